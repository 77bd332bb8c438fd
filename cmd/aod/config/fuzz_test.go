package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// FuzzLoad reads any file. What is refused has a place and a message; what is accepted
// is the same when the environment says it.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "queue: 5", "listen: '[::1]:0'\nhosts: [a, b]", "unit: {a: {queue: 1, access: read-write}}", "a: &a [*a]", "origins: ['https://a:443']",
		"retention_size: 1.5t\nqueue_wait: 1h30m", "data: x\nunits: [a, ./b]", "- 1", "? {a: b}\n: c", "queue: !!int abc", "unit: &u {a: *u}", "queue: !" + strings.Repeat("g", 2000) + " 1", "\x00", "a: b: c",
	} {
		f.Add([]byte(seed))
	}
	name := filepath.Join(f.TempDir(), "aod.yaml")
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Options{File: name, Data: "/data"})
		if err != nil {
			checkFindings(t, err)
			return
		}
		checkSameByEnvironment(t, c)
	})
}

func checkFindings(t *testing.T, err error) {
	t.Helper()
	if !fault.Is(err, fault.Input) || len(fault.Public(err).Findings) == 0 {
		t.Fatalf("%v", err)
	}
	for _, f := range fault.Public(err).Findings {
		if f.File == "" || f.Message == "" || len(f.Message) > 1000 {
			t.Errorf("%+v", f)
		}
	}
}

func checkSameByEnvironment(t *testing.T, c *Config) {
	t.Helper()
	env := map[string]string{}
	for i, v := range c.Values() {
		if i == len(new(Config).settings()) {
			break // a unit's: the file's alone
		}
		env["AOD_"+strings.ToUpper(v.Key)] = v.Value
	}
	again, err := Load(Options{Data: "/data", Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatalf("%v: %v", env, fault.Public(err).Findings)
	}
	values := func(c *Config) (texts []string) {
		for _, v := range c.Values()[:len(new(Config).settings())] {
			texts = append(texts, v.Key+" "+v.Value)
		}
		return texts
	}
	if diff := cmp.Diff(values(c), values(again)); diff != "" {
		t.Error(diff)
	}
}
