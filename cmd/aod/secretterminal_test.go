//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// stays keeps the terminal open, as the shell does that a program was called from: else its settings go with the program.
func (p *person) stays() {
	p.t.Helper()
	n, err := unix.IoctlGetInt(int(p.terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		p.t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = theirs.Close() })
}

// shows reports whether the terminal shows what is typed.
func (p *person) shows() bool {
	p.t.Helper()
	flags, err := unix.IoctlGetTermios(int(p.terminal.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return flags.Lflag&unix.ECHO != 0
}

func TestASecretIsTypedUnseen(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := sitDown(t, "--data", data, "secret", "set", "weather")
	p.stays()
	p.sees("value of weather, which isn't shown: ")
	testkit.Eventually(t, "the terminal hides what is typed", func() bool { return !p.shows() })
	p.types("hunter2\n")
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.all())
	}
	p.sees("weather is kept in")
	kept, err := os.ReadFile(filepath.Join(data, "secrets", "weather"))
	if err != nil || strings.TrimSpace(string(kept)) != "hunter2" {
		t.Errorf("%q is kept, %v", kept, err)
	}
	if strings.Contains(p.all(), "hunter2") || !p.shows() {
		t.Errorf("it shows %q, and afterwards what is typed: %v", p.all(), p.shows())
	}
}

// Whoever thinks better of it has the terminal back as it was.
func TestASecretThatIsNotTypedAfterAll(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := sitDown(t, "--data", data, "secret", "set", "weather")
	p.stays()
	p.sees("value of weather, which isn't shown: ")
	testkit.Eventually(t, "the terminal hides what is typed", func() bool { return !p.shows() })
	p.types("hunt\x03")
	if code := p.code(); code != 130 {
		t.Errorf("exit code %d: %s", code, p.all())
	}
	if _, err := os.Stat(filepath.Join(data, "secrets", "weather")); err == nil || strings.Contains(p.all(), "hunt") || !p.shows() {
		t.Errorf("%v, it shows %q, and afterwards what is typed: %v", err, p.all(), p.shows())
	}
}
