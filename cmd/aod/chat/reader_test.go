package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

// desk is an editor, and what is seen of it.
type desk struct {
	*editor
	t          *testing.T
	keyboard   *io.PipeWriter
	screen     testkit.Log
	interrupts chan os.Signal
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	in, keyboard := io.Pipe()
	d := &desk{t: t, keyboard: keyboard, interrupts: make(chan os.Signal, 1)}
	d.editor = newEditor(in, &d.screen, d.interrupts)
	t.Cleanup(func() { _ = keyboard.Close() })
	return d
}

// types returns when all is taken, so that what is read next has it.
func (d *desk) types(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d.keyboard, text); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) reads(want string) {
	d.t.Helper()
	if got, err := d.line(d.t.Context(), "> "); err != nil || got != want {
		d.t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

func TestALineIsEdited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.types("one\r" + "two\r" + "two\r") // all before it is read
	d.reads("one")
	d.reads("two")
	d.reads("two")
	d.types("\x1b[A\x1b[A\r") // the line before is there once
	d.reads("one")
	d.types("\x1b[A\x7f\x7fld\x1b[D\x1b[De\r")
	d.reads("oeld")
	d.types("\x04")
	if _, err := d.line(t.Context(), "> "); !errors.Is(err, io.EOF) {
		t.Errorf("Ctrl-D: %v", err)
	}
}

func TestPastedLinesAreOneMessage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.types("\x1b[200~one\r\ntwo\rthree\x1b[201~ and four\rnext\r")
	d.reads("one\ntwo\nthree and four")
	d.reads("next")
}

func TestCtrlCDropsWhatWasTyped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := d.line(ctx, "> ")
		done <- err
	}()
	d.types("half a li")
	testkit.Eventually(t, "it is seen", func() bool { return strings.Contains(d.screen.String(), "half a li") })
	d.types("ne and more\r\x03")
	<-d.interrupts
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) && err != nil {
		t.Errorf("%v", err)
	}
	d.types("whole\r")
	d.reads("whole")
	d.types("dropped\r")
	d.types("another\r\x03")
	<-d.interrupts
	d.types("kept\r")
	d.reads("kept")
}

func TestTheKeyboardIsBounded(t *testing.T) {
	t.Parallel()
	k := &keys{more: make(chan struct{}, 1), interrupts: make(chan os.Signal, 1)}
	for range 3 {
		k.take([]byte(strings.Repeat("x", maxMessage/2)), false)
	}
	if len(k.waiting) != maxMessage {
		t.Errorf("%d bytes wait", len(k.waiting))
	}
	h := &history{}
	for n := range 2 * maxHistory {
		h.Add(fmt.Sprint(n))
	}
	h.Add("")
	if h.Len() != maxHistory || h.At(0) != fmt.Sprint(2*maxHistory-1) || h.At(maxHistory-1) != fmt.Sprint(maxHistory) {
		t.Errorf("%d lines from %s to %s", h.Len(), h.At(0), h.At(maxHistory-1))
	}
}

func TestPlainLinesAreBounded(t *testing.T) {
	t.Parallel()
	l := newLines(strings.NewReader("one\n" + strings.Repeat("x", 100_000) + "\n" + strings.Repeat("x", 2*maxMessage)))
	for _, want := range []int{3, 100_000} {
		if line, err := l.line(t.Context(), ""); err != nil || len(line) != want {
			t.Errorf("%d bytes, %v, want %d", len(line), err, want)
		}
	}
	if _, err := l.line(t.Context(), ""); !fault.Is(err, fault.Input) {
		t.Errorf("an endless line: %v", err)
	}
}
