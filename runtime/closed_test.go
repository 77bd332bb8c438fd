package runtime

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// closing are the permissions that a program can take from us on its own files, which
// are ours as well where we are not root.
var closing = []fs.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600}

func TestClosedResultsAreDelivered(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	for _, perm := range closing {
		t.Run(perm.String(), func(t *testing.T) {
			l := newLayout(t)
			write(t, l.path("io/output/d/x"), "x")
			for _, closed := range []string{"io/output/d/x", "io/output/d", "io/output"} {
				if err := os.Chmod(l.path(closed), perm); err != nil {
					t.Fatal(err)
				}
			}
			files, err := everything(t, l, filepath.Join(t.TempDir(), "out"))
			if err != nil || len(files) != 1 || read(t, files[0].Path) != "x" {
				t.Errorf("%+v, %v", files, err)
			}
		})
	}
}

func TestAClosedResultIsAFinding(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	for _, closed := range []string{"io/output.json", "io"} {
		for _, perm := range []fs.FileMode{0, 0o100, 0o200} {
			t.Run(fmt.Sprint(closed, " ", perm), func(t *testing.T) {
				l := newLayout(t)
				write(t, l.path("io/output.json"), "{}")
				if err := os.Chmod(l.path(closed), perm); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = os.Chmod(l.path(closed), 0o700) }()
				raw, finding, err := l.ReadResult(10)
				if err != nil || finding == nil || !strings.Contains(finding.Message, "permissions are closed") {
					t.Errorf("%q, %+v, %v", raw, finding, err)
				}
			})
		}
	}
}
