//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// person sits at a terminal in which a program runs.
type person struct {
	t        *testing.T
	terminal *os.File // the person's end
	process  *exec.Cmd

	mu   sync.Mutex
	seen bytes.Buffer
}

func sitDown(t *testing.T, args ...string) *person {
	t.Helper()
	own, theirs := openTerminal(t)
	p := &person{t: t, terminal: own, process: exec.Command("aod", args...)}
	p.process.Stdin, p.process.Stdout, p.process.Stderr = theirs, theirs, theirs
	p.process.Env = append(os.Environ(), "TERM=xterm")
	p.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.resize(30, 90)
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close() // it is the process's now
	go p.look()
	t.Cleanup(func() {
		_ = p.process.Process.Kill() // it has ended, unless the test failed
		_ = own.Close()
	})
	return p
}

func openTerminal(t *testing.T) (own, theirs *os.File) {
	t.Helper()
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this machine has no pseudo terminals: ", err)
	}
	n, err := unix.IoctlGetInt(int(own.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(own.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return own, theirs
}

func (p *person) resize(rows, columns uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) look() {
	buf := make([]byte, 4096)
	for {
		n, err := p.terminal.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := p.terminal.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

func (p *person) sees(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(p.all(), text) {
			return
		}
	}
	p.t.Fatalf("%q never came: %q", text, p.all())
}

// asks types a question until the answer comes: what is typed too early is lost with what a
// shell does at its start.
func (p *person) asks(question, answer string) {
	p.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		p.types(question)
		if strings.Contains(p.all(), answer) {
			return
		}
	}
	p.t.Fatalf("%q never came: %q", answer, p.all())
}

func (p *person) code() int {
	p.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.process.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(testkit.Patience):
		p.t.Fatalf("it doesn't end: %q", p.all())
		return -1
	}
}

// lines reports whether the terminal reads whole lines, as it does outside of a shell.
func (p *person) lines() bool {
	state, err := unix.IoctlGetTermios(int(p.terminal.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return state.Lflag&unix.ICANON != 0
}

func TestAShellAtATerminal(t *testing.T) {
	dockertest.Require(t)
	work, data := alone(t)
	for name, text := range map[string]string{
		"Dockerfile": "FROM debian:trixie-slim\nCMD [\"true\"]\n", "agent.yaml": "name: scripted\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	} {
		write(t, text, work, "scripted", name)
	}
	t.Run("has its size and its keys, and gives it back", func(t *testing.T) {
		p := sitDown(t, "--data", data, "shell", filepath.Join(work, "scripted"))
		p.asks("stty size\r", "30 90")
		p.types("echo $((20 + 3))-$TERM; tty\r")
		p.sees("23-xterm")
		p.sees("/dev/")
		p.resize(44, 99)
		p.asks("stty size\r", "44 99")
		if p.lines() {
			t.Error("keys come line by line")
		}
		p.types("sh -c 'echo be\"\"gun; exec sleep 300'\r") // one program: between two the key would be the shell's
		p.sees("begun")
		p.types("\x03")
		p.asks("echo went-$((1 + 1))\r", "went-2")
		p.types("exit 5\r")
		if code := p.code(); code != 5 {
			t.Errorf("code %d", code)
		}
		if !p.lines() {
			t.Error("the terminal isn't as it was")
		}
	})
	t.Run("goes when its terminal does", func(t *testing.T) {
		p := sitDown(t, "--data", data, "shell", filepath.Join(work, "scripted"))
		p.asks("echo $((20 + 3))\r", "23")
		if err := p.process.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if code := p.code(); code != 130 {
			t.Errorf("code %d", code)
		}
	})
	if left, _ := filepath.Glob(filepath.Join(data, "runs", "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
