package api

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestCheckFileName(t *testing.T) {
	for _, name := range []string{"a", "a/b.txt", ".hidden", "ä ö", "a..b", strings.Repeat("x", 255), strings.Repeat("a/", 15) + "a"} {
		if err := CheckFileName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "../x", "a/../x", "a//b", "./a", "a/", "/a", "/io/output/x", `a\b`, "a\x00", "a\n", "a\x1b[2J", "a\xff",
		strings.Repeat("x", 256), strings.Repeat("a/", 16) + "a", strings.Repeat(strings.Repeat("x", 200)+"/", 6) + "x",
	} {
		if err := CheckFileName(name); !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzCheckFileName: every name that a server writes into a record is one that a client takes.
func FuzzCheckFileName(f *testing.F) {
	for _, seed := range []string{"a", "./a//b", "/io/output/x", strings.Repeat("x", 255), "a/../b", "\u0085"} {
		f.Add(seed)
	}
	fuzzbound.Run(f, func(t *testing.T, name string) {
		clean, err := contract.CleanName(name, contract.StageOutput)
		if err != nil {
			return
		}
		if err := CheckFileName(clean); err != nil {
			t.Errorf("%q of %q is refused: %v", clean, name, err)
		}
	})
}
