package runtime

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestTheDiskIsMeasuredWhereAProgramCanWrite(t *testing.T) {
	const limit = 1 << 20
	big := strings.Repeat("x", limit+1)
	cases := []struct {
		name string
		make func(t *testing.T, l Layout)
		says string // "" where it is within the limit
	}{
		{"an untouched run", func(*testing.T, Layout) {}, ""},
		{"an output file", func(t *testing.T, l Layout) { write(t, l.path("io/output/x"), big) }, "wrote more than 1048576 bytes"},
		{"a file that nobody collects", func(t *testing.T, l Layout) { write(t, l.path("io/other/x"), big) }, "wrote more than"},
		{"a file handed out", func(t *testing.T, l Layout) { write(t, l.path("io/handoff/outgoing/x"), big) }, "wrote more than"},
		{"the workspace", func(t *testing.T, l Layout) { write(t, l.path("workspace/.x"), big) }, "wrote more than"},
		{"the report", func(t *testing.T, l Layout) { write(t, l.path("aod/report"), big) }, "wrote more than"},
		{"many files together", func(t *testing.T, l Layout) {
			for i := range 300 {
				write(t, l.path(fmt.Sprintf("workspace/%d", i)), strings.Repeat("x", 4096))
			}
		}, "wrote more than"},
		{"what we gave it doesn't count", func(t *testing.T, l Layout) {
			write(t, l.path("io/input/x"), big)
			write(t, l.path("incoming/x"), big)
		}, ""},
		{"a sparse file takes no room", func(t *testing.T, l Layout) {
			write(t, l.path("workspace/x"), "")
			if err := os.Truncate(l.path("workspace/x"), 1<<40); err != nil {
				t.Skip(err)
			}
		}, ""},
		{"links are not followed", func(t *testing.T, l Layout) {
			write(t, t.TempDir()+"/x", big)
			link(t, l.Dir, l.path("workspace/up"))
			link(t, "/", l.path("workspace/root"))
		}, ""},
		{"a FIFO doesn't hold it up", func(t *testing.T, l Layout) { fifo(t, l.path("workspace/fifo")) }, ""},
		{"a tower", func(t *testing.T, l Layout) { testkit.Tower(t, l.path("workspace"), "d", 3000) }, "more than 128 deep"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(t)
			c.make(t, l)
			over := (&meter{layout: l, limit: limit}).over(t.Context())
			switch {
			case c.says == "" && over != nil:
				t.Error(over)
			case c.says != "" && (over == nil || over.Limit != "output" || !strings.Contains(over.Message, c.says)):
				t.Errorf("over %v", over)
			}
			_ = safefs.RemoveTree(l.path("workspace"))
		})
	}
}

func TestTooManyFilesAreOverTheLimit(t *testing.T) {
	l := newLayout(t)
	write(t, l.path("workspace/1"), "")
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := meter{root: root, limit: 1 << 40, entries: watchEntries - 1}
	if over := m.dir(t.Context(), "workspace", 0); over != nil {
		t.Error(over)
	}
	if over := m.dir(t.Context(), "workspace", 0); over == nil || !strings.Contains(over.Message, "more than 50000 files") {
		t.Error(over)
	}
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	l := newLayout(t)
	write(t, l.path("workspace/x"), "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if over := (&meter{layout: l, limit: 0}).over(ctx); over != nil {
		t.Error(over)
	}
}

func TestNothingHidesFromTheMeasureBehindPermissions(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	for _, perm := range closing {
		t.Run(perm.String(), func(t *testing.T) {
			l := newLayout(t)
			write(t, l.path("workspace/d/x"), strings.Repeat("x", 1<<20))
			for _, dir := range []string{"workspace/d", "workspace"} {
				if err := os.Chmod(l.path(dir), perm); err != nil {
					t.Fatal(err)
				}
			}
			if over := (&meter{layout: l, limit: 1 << 19}).over(t.Context()); over == nil {
				t.Error("a megabyte was not seen")
			}
			_ = safefs.RemoveTree(l.Dir)
		})
	}
}
