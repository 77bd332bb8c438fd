package runtime

import "testing"

func TestAModeSaysWhatASpecMayHave(t *testing.T) {
	console := &Console{}
	for name, c := range map[string]struct {
		spec   Spec
		remote bool
		legal  bool
	}{
		"nothing at all":                       {legal: true},
		"a durable run":                        {spec: Spec{Mode: ModeOnce, Durable: true}, legal: true},
		"a filter that waits for its run":      {spec: Spec{Mode: ModeParked, Durable: true, Filter: &Filter{}}, legal: true},
		"a run elsewhere":                      {spec: Spec{Mode: ModeOnce, Durable: true}, remote: true, legal: true},
		"a session":                            {spec: Spec{Mode: ModeSession}, legal: true},
		"a session elsewhere":                  {spec: Spec{Mode: ModeSession}, remote: true},
		"a session with a filter":              {spec: Spec{Mode: ModeSession, Filter: &Filter{}}},
		"a shell":                              {spec: Spec{Mode: ModeConsole, Console: console}, legal: true},
		"a shell elsewhere":                    {spec: Spec{Mode: ModeConsole, Console: console}, remote: true, legal: true},
		"a shell without a console":            {spec: Spec{Mode: ModeConsole}},
		"a durable shell":                      {spec: Spec{Mode: ModeConsole, Console: console, Durable: true}},
		"a server whose client is here":        {spec: Spec{Mode: ModeStdio, Console: console}, legal: true},
		"a server that outlives its client":    {spec: Spec{Mode: ModeStdio, Console: console, Durable: true}},
		"a console of a program that waits":    {spec: Spec{Mode: ModeParked, Console: console}},
		"a console of one that has run before": {spec: Spec{Mode: ModeOnce, Console: console}},
	} {
		if err := c.spec.check(c.remote); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
}
