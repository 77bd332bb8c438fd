package secrets

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	keep := func(name, value string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		write(t, path, value)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := Files{Dir: dir, Named: map[string]string{"given": keep("elsewhere", "from a flag", 0o600)}}
	keep("given", "from the directory", 0o600)
	keep("line", "hunter2\n", 0o600)
	keep("lines", "hunter2\n\n", 0o400)
	keep("dos", "hunter2\r\n", 0o600)
	keep("largest", strings.Repeat("x", maxSecret), 0o600)
	for name, want := range map[string]string{
		"line": "hunter2", "lines": "hunter2\n", "dos": "hunter2", "given": "from a flag", "largest": strings.Repeat("x", maxSecret),
	} {
		if got, err := s.Read(name); string(got) != want || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}

	keep("shown", "hunter2", 0o640)
	keep("open", "hunter2", 0o604)
	keep("empty", "\n", 0o600)
	keep("large", strings.Repeat("x", maxSecret+1), 0o600)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "dir"), 0o700), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink("/etc/hostname", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		kind fault.Kind
		says string
	}{
		"shown": {fault.Forbidden, "others can read"}, "open": {fault.Forbidden, "0604"}, "empty": {fault.Input, "empty"},
		"large": {fault.Input, "65536"}, "dir": {fault.Input, "a regular file"}, "pipe": {fault.Input, "a regular file"},
		"missing": {fault.NotFound, "there is no secret"}, "link": {fault.Unavailable, "can't be read"},
	} {
		got, err := s.Read(name)
		if got != "" || !fault.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) || fault.Public(err).Hint == "" || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q, %v", name, string(got), err)
		}
	}
	if _, err := (Files{}).Read("line"); !fault.Is(err, fault.NotFound) {
		t.Errorf("without a directory: %v", err)
	}
	if _, err := (Files{Dir: dir + "/gone"}).Read("line"); !fault.Is(err, fault.NotFound) {
		t.Errorf("with one that isn't there: %v", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
