package main

import (
	"encoding/json"
	"testing"

	"github.com/agent-on-demand/aod/cmd/aod/describe"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func TestAUnitOfAServerIsDescribed(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	code, stdout, stderr := command(t, t.Context(), "describe", "hello", "--json", "--server", s.URL)
	var about describe.Description
	if err := json.Unmarshal([]byte(stdout), &about); code != 0 || err != nil {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	if about.Name != "hello" || about.Server != s.URL || about.Example == nil || about.Example.Command != "aod run hello --server "+s.URL {
		t.Errorf("%+v, %+v", about, about.Example)
	}
}

func TestWordsForAShell(t *testing.T) {
	for word, want := range map[string]string{
		"./a-b_c.json": "./a-b_c.json", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'", "k=ä": "'k=ä'",
	} {
		if got := ui.Quoted(word); got != want {
			t.Errorf("%q is %s", word, got)
		}
	}
}
