package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// homeOf makes a home of a server with one session that is open and one that is closed.
func homeOf(t *testing.T, open, closed string) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "server")
	if err := os.MkdirAll(filepath.Join(home, layout.Units), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(home, layout.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, id := range []string{open, closed} {
		row := store.Session{ID: id, Unit: "talker", Closed: id == closed, CreatedAt: now, UsedAt: now}
		if err := s.Sessions.Insert(trusted.Context(t), row); err != nil {
			t.Fatal(err)
		}
		put(t, "told", home, layout.Sessions, id, layout.Home, ".agent", "told")
		put(t, "given", home, layout.Sessions, id, layout.Base, "a.txt")
		put(t, "{}", home, layout.Sessions, id, layout.Manifest)
		put(t, "made", home, layout.Sessions, id, layout.Project, "a.txt")
		put(t, "left", home, layout.Sessions, id, layout.Turns, "home-A.tar")
		put(t, "of a container", home, layout.Sessions, id, "live", "stdout")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return home
}

func put(t *testing.T, content string, at ...string) {
	t.Helper()
	file := filepath.Join(at...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whatever a program leaves in its home, the backup is written, can be restored, and has the rest.
func TestABackupHasTheHomesOfOpenSessions(t *testing.T) {
	const open, closed = "01a2044e-1969-7341-b44f-88564b92b4f1", "01a2044e-1969-7341-b44f-88564b92b4f2"
	before := homeOf(t, open, closed)
	own := filepath.Join(before, layout.Sessions, open, layout.Home)
	told := filepath.Join(own, ".agent", "told")
	put(t, "odd", own, "not\xffUTF-8")
	root, err := os.OpenRoot(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.MkdirAll(strings.Repeat("long/", 1000), 0o755), root.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(own, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(own, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(filepath.Dir(own), layout.Base, "link")); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for _, theirs := range []string{told, filepath.Join(filepath.Dir(own), layout.Project)} {
			if err := os.Chown(theirs, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := Write(trusted.Context(t), before, Target{File: file, Replace: true}, "test"); err != nil {
		t.Fatal(err)
	}
	after := filepath.Join(t.TempDir(), "server")
	if _, err := Restore(trusted.Context(t), after, file, false); err != nil {
		t.Fatal(err)
	}
	own = filepath.Join(after, layout.Sessions, open, layout.Home)
	told = filepath.Join(own, ".agent", "told")
	if raw, err := os.ReadFile(told); string(raw) != "told" {
		t.Errorf("%q, %v", raw, err)
	}
	if info, err := os.Stat(told); err != nil || os.Geteuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("it isn't the sandbox's any more: %v, %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(own, "link")); target != "/etc/passwd" {
		t.Errorf("%q, %v", target, err)
	}
	if entries, _ := os.ReadDir(filepath.Join(after, layout.Sessions)); len(entries) != 1 {
		t.Errorf("there are %v", entries)
	}
	session := filepath.Dir(own)
	if entries, _ := os.ReadDir(session); len(entries) != 5 {
		t.Errorf("the session has %v", entries)
	}
	for name, want := range map[string]string{layout.Base + "/link": "given", layout.Project + "/a.txt": "made", layout.Manifest: "{}", layout.Turns + "/home-A.tar": "left"} {
		if raw, err := os.ReadFile(filepath.Join(session, name)); string(raw) != want {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	if info, err := os.Stat(filepath.Join(session, layout.Project)); err != nil || os.Geteuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("the project isn't the sandbox's any more: %v, %v", info, err)
	}
}
