//go:build linux

package pid1

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLookup(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, mode := range map[string]os.FileMode{
		"a/only-a": 0o755, "b/only-b": 0o755, "a/both": 0o755, "b/both": 0o755,
		"a/better-in-b": 0o644, "b/better-in-b": 0o755, "a/never": 0o644, "here": 0o755,
	} {
		writeFile(t, name, "#!/bin/sh\n", mode)
	}
	if err := os.MkdirAll("a/directory", 0o755); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, program, path, want string
		err                       error
	}{
		{"the first directory wins", "both", "a:b", "a/both", nil},
		{"a later directory", "only-b", "a:b", "b/only-b", nil},
		{"a missing directory is passed over", "only-b", "missing:here:b", "b/only-b", nil},
		{"one that can't be executed is passed over", "better-in-b", "a:b", "b/better-in-b", nil},
		{"one that can't be executed, and no other", "never", "a:b", "", syscall.EACCES},
		{"a directory isn't a program", "directory", "a:b", "", syscall.EACCES},
		{"an empty directory is the working one", "here", "a::b", "./here", nil},
		{"a name with a slash is not searched for", "b/both", "a", "b/both", nil},
		{"nowhere", "only-b", "a", "", errNotFound},
		{"no name", "", "a:b", "", errNotFound},
		{"no path is the system's", "sh", "", "/bin/sh", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := lookup(c.program, c.path)
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("lookup = %q, %v, want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestNotStarted(t *testing.T) {
	cases := []struct {
		name string
		err  error
		code int
	}{
		{"not found", errNotFound, 127},
		{"found, but what runs it is not", syscall.ENOENT, 127},
		{"no permission", syscall.EACCES, 126},
		{"too many arguments", syscall.E2BIG, 126},
		{"no process left", syscall.EAGAIN, 126},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			end := notStarted(strings.Repeat("x", 100_000), "", c.err)
			if end.code != c.code || end.signal != 0 || len(end.startError) > 400 {
				t.Errorf("%+v", end)
			}
		})
	}
}

func TestAProgramThatCannotBeStartedSaysWhatToMend(t *testing.T) {
	crlf, lf := filepath.Join(t.TempDir(), "crlf"), filepath.Join(t.TempDir(), "lf")
	writeFile(t, crlf, "#!/bin/sh\r\necho\r\n", 0o755)
	writeFile(t, lf, "#!/no/such\necho\r\n", 0o755)
	for _, c := range []struct {
		path string
		err  error
		want string
	}{
		{crlf, syscall.ENOENT, "save it with LF"},
		{lf, syscall.ENOENT, "its interpreter or its loader is missing"},
		{lf, syscall.EACCES, "chmod +x"},
		{lf, syscall.ENOEXEC, "another architecture"},
	} {
		if end := notStarted("x", c.path, c.err); !strings.Contains(end.startError, c.want) {
			t.Errorf("%s: %s", c.path, end.startError)
		}
	}
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(name), 0o755),
		os.WriteFile(name, []byte(content), mode),
	); err != nil {
		t.Fatal(err)
	}
}
