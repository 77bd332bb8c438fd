package safefs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileIsReadWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "full"), "four")
	root := openRoot(t, dir)
	for most, want := range map[int64]error{5: nil, 4: nil, 3: ErrTooLarge, 0: ErrTooLarge} {
		for name, read := range map[string]func() ([]byte, error){
			"ReadAtMost":  func() ([]byte, error) { return ReadAtMost(strings.NewReader("four"), most) },
			"ReadNamed":   func() ([]byte, error) { return ReadNamed(filepath.Join(dir, "full"), most) },
			"ReadRegular": func() ([]byte, error) { return ReadRegular(root, "full", most) },
		} {
			raw, err := read()
			if !errors.Is(err, want) || err == nil && string(raw) != "four" || err != nil && raw != nil {
				t.Errorf("%s of %d bytes: %q, %v", name, most, raw, err)
			}
		}
	}
}

func TestWhatIsNoFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	fifo(t, filepath.Join(dir, "fifo"))
	write(t, filepath.Join(dir, "file"), "x")
	link(t, "file", filepath.Join(dir, "link"))
	root := openRoot(t, dir)
	var other *Irregular
	if _, err := ReadRegular(root, "link", 9); !errors.As(err, &other) {
		t.Errorf("a link: %v", err)
	}
	if raw, err := ReadNamed(filepath.Join(dir, "link"), 9); err != nil || string(raw) != "x" {
		t.Errorf("a link of the user's: %q, %v", raw, err)
	}
	if _, err := ReadNamed(filepath.Join(dir, "fifo"), 9); !errors.As(err, &other) {
		t.Errorf("a FIFO: %v", err)
	}
	if _, err := ReadNamed(filepath.Join(dir, "none"), 9); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
