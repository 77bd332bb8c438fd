package initbin

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestTheProgramsThatAreBuiltIn(t *testing.T) {
	files := fstest.MapFS{
		"bin/.gitkeep":             {},
		"bin/aod-init-linux-amd64": {Data: []byte("program")},
		"bin/aod-init-linux-s390x": {Data: []byte("program")},
	}
	t.Run("gives the program that was built in", func(t *testing.T) {
		if raw, err := embeddedIn(files, "aod-init", "amd64"); err != nil || string(raw) != "program" {
			t.Errorf("got %q, %v", raw, err)
		}
	})
	t.Run("gives none that wasn't", func(t *testing.T) {
		if raw, err := embeddedIn(files, "aod-init", "arm64"); err != nil || raw != nil {
			t.Errorf("got %q, %v", raw, err)
		}
	})
	for _, arch := range []string{"", "s390x", "x86_64", "../bin/aod-init-linux-amd64", "amd64\x00"} {
		t.Run("refuses the architecture "+arch, func(t *testing.T) {
			if _, err := embeddedIn(files, "aod-init", arch); !fault.Is(err, fault.Unsupported) {
				t.Errorf("got %v", err)
			}
			if _, err := new(Installer).Install(t.TempDir(), arch); !fault.Is(err, fault.Unsupported) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("works on what this program embeds", func(t *testing.T) {
		if self, err := Check("amd64"); self || err != nil && !strings.Contains(fault.Public(err).Hint, "make build") {
			t.Errorf("itself %v, %v", self, err)
		}
	})
}
