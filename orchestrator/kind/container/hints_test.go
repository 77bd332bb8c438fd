package container

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestSurprisesAreKnownByWhatProgramsSay(t *testing.T) {
	t.Parallel()
	inputs := func() []string { return []string{"sales.csv", "2/a.txt"} }
	for line, want := range map[string]*sandboxHint{
		"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>": &noNetwork,
		"curl: (6) Could not resolve host: example.org":                                          &noNetwork,
		"Error: getaddrinfo EAI_AGAIN example.org":                                               &noNetwork,
		"dial tcp: lookup example.org: no such host":                                             &noNetwork,
		"OSError: [Errno 101] Network is unreachable":                                            &noNetwork,
		"OSError: [Errno 30] Read-only file system: 'out.txt'":                                   &readOnly,
		"touch: cannot touch 'x': Read-only file system":                                         &readOnly,
		"Error: EROFS: read-only file system, open '/capsule/x'":                                 &readOnly,
		"ModuleNotFoundError: No module named 'requests'":                                        &noModule,
		"Error: Cannot find module 'left-pad'":                                                   &noModule,
		"Can't locate JSON/XS.pm in @INC":                                                        &noModule,
		"FileNotFoundError: [Errno 2] No such file or directory: 'sales.csv'":                    &inputAsItStands,
		"cat: 2/a.txt: No such file or directory":                                                &inputAsItStands,
		"Error: ENOENT: no such file or directory, open 'sales.csv'":                             &inputAsItStands,
		"FileNotFoundError: [Errno 2] No such file or directory: '/io/input/sales.csv'":          nil,
		"FileNotFoundError: [Errno 2] No such file or directory: 'model.bin'":                    nil,
		"looking up 3 names in the lookup table":                                                 nil,
		"/bin/sh: 1: npx: not found":                                                             &noProgram,
		"bash: ./run.sh: /bin/sh^M: bad interpreter: No such file or directory":                  &crlf,
		"/usr/bin/env: 'python3\\r': No such file or directory":                                  &crlf,
		"": nil,
	} {
		if got := surpriseIn(line, &noNetwork, inputs); got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got := surpriseIn("Could not resolve host: example.org", nil, inputs); got != nil {
		t.Errorf("with a network: %+v", got)
	}
}

func TestASurpriseFarFromTheEndIsNoReason(t *testing.T) {
	t.Parallel()
	var s sandboxHints
	s.note(&readOnly)
	for range lastWords - 1 {
		s.note(nil)
	}
	if s.atTheEnd() != &readOnly {
		t.Error("it was among the last words")
	}
	if s.note(nil); s.atTheEnd() != nil {
		t.Error("the program said a lot after it")
	}
	s.note(&noModule)
	if s.note(&noNetwork); s.atTheEnd() != &noNetwork {
		t.Error("the last one counts")
	}
	if s.forget(); s.atTheEnd() != nil {
		t.Error("another attempt knows of it")
	}
}

func TestAnEndIsToldAsWhatItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		code          int
		agent         capsule.Agent
		log           string
		message, hint string // parts of them
	}{
		{"a crash", 139, capsule.Agent{}, "", "it was ended by SIGSEGV", crashHint},
		{"an abort", 134, capsule.Agent{}, "", "it was ended by SIGABRT", crashHint},
		{"an end by somebody", 143, capsule.Agent{}, "", "it was ended by SIGTERM", "its log says more"},
		{"a pipe that nobody reads", 141, capsule.Agent{}, "", "it was ended by SIGPIPE", "nobody read"},
		{"a call that is forbidden", 159, capsule.Agent{}, "", "it was ended by SIGSYS", "a system call that the sandbox forbids"},
		{"a script that a shell can't find", 127, capsule.Agent{}, "/bin/sh: 1: /c/p.sh: not found", "exit code 127", "CR and LF"},
		{"a mode without x", 126, capsule.Agent{}, "", "exit code 126", "chmod +x"},
		{"a script of Windows", 127, capsule.Agent{}, "env: 'sh\\r': No such file or directory", "exit code 127", crlf.hint},
		{"a socket of its own", 1, capsule.Agent{Egress: outside.List{{}}}, "OSError: [Errno 101] Network is unreachable", "exit code 1", byName.hint},
		{"no network at all", 1, capsule.Agent{}, "OSError: [Errno 101] Network is unreachable", "exit code 1", noNetwork.hint},
		{"no npx", 127, capsule.Agent{}, "sh: 1: npx: not found", "exit code 127", noProgram.hint},
		{"a failure like any other", 1, capsule.Agent{}, "oh", "exit code 1", "its log says more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hints{run: &run.Run{Unit: unit.Of(&capsule.Capsule{Agent: c.agent})}}
			h.note(c.log)
			failure := &api.RunError{Message: fmt.Sprintf("the capsule failed with exit code %d", c.code), Hint: "its log says more"}
			h.explain(failure, c.code)
			if !strings.Contains(failure.Message, c.message) || !strings.Contains(failure.Hint, c.hint) {
				t.Errorf("%q (%s)", failure.Message, failure.Hint)
			}
		})
	}
	slow := &api.RunError{Kind: string(api.TimedOut)}
	if hintAtLog(slow, time.Second, time.Minute); slow.Hint != "" {
		t.Error("it hardly waited")
	}
	if hintAtLog(slow, 50*time.Second, time.Minute); !strings.Contains(slow.Hint, "50s for its log") {
		t.Errorf("%q", slow.Hint)
	}
	if startHint("npx: not found") != noProgram.hint || startHint("x: not found") == noProgram.hint {
		t.Error("npx is missing like any other program")
	}
}
