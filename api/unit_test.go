package api

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestCheckUnitName(t *testing.T) {
	for _, name := range []string{"a", "csv-report", "a.b_c-d", "1st", strings.Repeat("a", 63)} {
		t.Run("takes "+name, func(t *testing.T) {
			if err := CheckUnitName(name); err != nil {
				t.Error(err)
			}
		})
	}
	bad := map[string]string{
		"":                      "",
		"My Capsule":            "my-capsule",
		"-x-":                   "x",
		"a--b":                  "a-b",
		"a/b":                   "a-b",
		"../etc":                "etc",
		"ÄÖ":                    "",
		"x\n":                   "x",
		strings.Repeat("a", 64): strings.Repeat("a", 63),
	}
	for name, suggestion := range bad {
		t.Run("refuses and suggests for "+fault.Quote(name), func(t *testing.T) {
			err := CheckUnitName(name)
			if !fault.Is(err, fault.Input) {
				t.Fatalf("CheckUnitName = %v", err)
			}
			if hint := fault.Public(err).Hint; suggestion != "" && !strings.HasSuffix(hint, " "+suggestion) {
				t.Errorf("hint %q doesn't suggest %q", hint, suggestion)
			}
			if s := SuggestUnitName(name); s != "" && nameProblem(s) != "" {
				t.Errorf("the suggestion %q isn't a name itself", s)
			}
		})
	}
}

func FuzzSuggestUnitName(f *testing.F) {
	f.Add("My Capsule")
	f.Add("..__--")
	fuzzbound.Run(f, func(t *testing.T, name string) {
		if s := SuggestUnitName(name); s != "" && nameProblem(s) != "" {
			t.Errorf("SuggestUnitName(%q) = %q: %s", name, s, nameProblem(s))
		}
	})
}
