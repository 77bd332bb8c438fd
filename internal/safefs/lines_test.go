package safefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLinesGoOnBehindTheLastCompleteOne(t *testing.T) {
	t.Parallel()
	path, long := filepath.Join(t.TempDir(), "lines"), strings.Repeat("x", 200_000)
	for _, c := range []struct{ left, kept string }{
		{"", ""},
		{"torn", ""},
		{"a\nb\n", "a\nb\n"},
		{"a\nb", "a\n"},
		{"a\n" + long, "a\n"},
		{long, ""},
		{long + "\n" + long, long + "\n"},
	} {
		if err := os.WriteFile(path, []byte(c.left), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := OpenLines(path)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := io.ReadAll(file)
		if string(kept) != c.kept || err != nil {
			t.Errorf("of %d bytes %d are kept: %v", len(c.left), len(kept), err)
		}
		if _, err := io.WriteString(file, "next\n"); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if now, _ := os.ReadFile(path); string(now) != c.kept+"next\n" {
			t.Errorf("%d bytes now", len(now))
		}
	}
}

func TestEachWholeLineIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lines")
	if err := EachLine(path, 99, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("one\n\ntwo\nhal"), 0o600); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for _, c := range []struct {
		most int64
		end  error
		want string
	}{{99, nil, "one\n|\n|two\n|"}, {8, nil, "one\n|\n|"}, {99, enough, "one\n|"}} {
		var got string
		err := EachLine(path, c.most, func(raw []byte) (bool, error) {
			got += string(raw) + "|"
			return true, c.end
		})
		if got != c.want || !errors.Is(err, c.end) {
			t.Errorf("of %d bytes: %q %v", c.most, got, err)
		}
	}
	got := 0
	if err := EachLine(path, 99, func([]byte) (bool, error) { got++; return got < 2, nil }); err != nil || got != 2 {
		t.Errorf("%d lines, %v", got, err)
	}
}
