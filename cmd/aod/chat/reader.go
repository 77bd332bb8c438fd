package chat

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// maxMessage bounds a line, and all that is typed before it is read, in bytes.
const maxMessage = 1 << 20

// reader reads what the user says.
type reader interface {
	// line shows a prompt, if somebody sees it, and returns the next line. io.EOF: there will be none. When ctx ends,
	// the error is its cause, and what was typed by then is dropped.
	line(ctx context.Context, prompt string) (string, error)
	close()
}

// newReader returns an editor where a person sits at a terminal, with an env that writes beside what is typed; else
// plain lines, with an env without colours.
func newReader(env *cli.Env, interrupts chan<- os.Signal) (reader, *cli.Env) {
	shown := *env
	if file, ok := env.In.(*os.File); ok && env.StdinIsTerminal() && env.Out.Terminal {
		if before, err := term.MakeRaw(int(file.Fd())); err == nil {
			e := newEditor(file, env.Out, interrupts)
			e.fd, e.restore = env.Out.FD, func() { _ = term.Restore(int(file.Fd()), before) }
			shown.Out = env.Out.Through(e.terminal)
			if env.Err.Terminal {
				shown.Err = env.Err.Through(e.terminal)
			}
			return e, &shown
		}
	}
	shown.Out, shown.Err = env.Out.Plain(), env.Err.Plain()
	return newLines(env.In), &shown
}

// isEditor reports whether a person edits the lines.
func isEditor(r reader) bool { _, is := r.(*editor); return is }

// lines reads plain lines.
type lines struct {
	read   chan string
	failed error // set before read is closed
}

func newLines(r io.Reader) *lines {
	l := &lines{read: make(chan string)}
	go func() { // it ends with the input, or the process
		defer close(l.read)
		in := bufio.NewScanner(r)
		in.Buffer(nil, maxMessage)
		for in.Scan() {
			l.read <- in.Text()
		}
		if err := in.Err(); err != nil {
			l.failed = fault.Wrap(fault.Input, err, "the next line can't be read").
				WithHint("a line has at most %d MiB", maxMessage>>20)
		}
	}()
	return l
}

func (l *lines) line(ctx context.Context, _ string) (string, error) {
	select {
	case line, more := <-l.read:
		switch {
		case more:
			return line, nil
		case l.failed != nil:
			return "", l.failed
		}
		return "", io.EOF
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (l *lines) close() {}

// editor reads lines that are edited at a terminal in raw mode.
type editor struct {
	terminal *term.Terminal
	keys     *keys
	fd       int // of the terminal
	restore  func()
}

func newEditor(in io.Reader, out io.Writer, interrupts chan<- os.Signal) *editor {
	k := &keys{more: make(chan struct{}, 1), interrupts: interrupts}
	go k.pump(in) // it ends with the input, or the process
	e := &editor{keys: k, fd: -1, restore: func() {}}
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, out}, "")
	e.terminal.History = &history{}
	e.terminal.SetBracketedPasteMode(true)
	return e
}

// line returns pasted lines as one: Enter that is typed ends it.
func (e *editor) line(ctx context.Context, prompt string) (string, error) {
	if columns, rows, err := term.GetSize(e.fd); err == nil {
		_ = e.terminal.SetSize(columns, rows)
	}
	e.keys.unwanted = ctx.Done()
	var whole []string
	for size := 0; ; {
		e.terminal.SetPrompt(prompt)
		text, err := e.terminal.ReadLine()
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		whole = append(whole, text)
		if size += len(text) + 1; errors.Is(err, term.ErrPasteIndicator) && size < maxMessage {
			prompt = "… "
			continue
		}
		switch {
		case errors.Is(err, term.ErrPasteIndicator):
			err = nil
		case err != nil:
			e.terminal.SetPrompt("")
			_, _ = e.terminal.Write(nil) // the prompt goes
		}
		return strings.Join(whole, "\n"), err
	}
}

func (e *editor) close() {
	e.terminal.SetBracketedPasteMode(false)
	e.restore()
}

// keys are what is typed at a terminal in raw mode, also while nobody reads it. Ctrl-C drops what wasn't read yet, and
// interrupts.
type keys struct {
	unwanted   <-chan struct{} // closed when the line that is read isn't wanted any more
	more       chan struct{}
	interrupts chan<- os.Signal

	mu      sync.Mutex
	waiting []byte
	over    bool
}

const (
	ctrlC     = 3
	dropsLine = "\x05\x15\r" // to the end, delete to the start, Enter
)

// pump takes what is typed.
func (k *keys) pump(in io.Reader) {
	for buf := make([]byte, 4<<10); ; {
		n, err := in.Read(buf)
		k.take(buf[:n], err != nil)
		if err != nil {
			return
		}
	}
}

func (k *keys) take(typed []byte, over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := bytes.LastIndexByte(typed, ctrlC); at >= 0 {
		k.waiting, typed = nil, typed[at+1:]
		select {
		case k.interrupts <- os.Interrupt:
		default: // one waits already
		}
	}
	k.waiting = append(k.waiting, typed[:min(len(typed), maxMessage-len(k.waiting))]...)
	k.over = k.over || over
	select {
	case k.more <- struct{}{}:
	default:
	}
}

// Read implements io.Reader for the terminal. It returns no more than a line, so that the rest can be dropped; when the
// line isn't wanted any more, what ends it.
func (k *keys) Read(p []byte) (int, error) {
	for {
		select {
		case <-k.unwanted:
			return copy(p, dropsLine), nil
		default:
		}
		if n, over := k.taken(p); n > 0 {
			return n, nil
		} else if over {
			return 0, io.EOF
		}
		select {
		case <-k.more:
		case <-k.unwanted:
		}
	}
}

func (k *keys) taken(p []byte) (n int, over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	end := len(k.waiting)
	if at := bytes.IndexAny(k.waiting, "\r\n"); at >= 0 {
		end = at + 1
		if bytes.HasPrefix(k.waiting[at:], []byte("\r\n")) { // of what is pasted
			end++
		}
	}
	n = copy(p, k.waiting[:end])
	k.waiting = k.waiting[n:]
	return n, k.over
}

// maxHistory bounds the lines that are kept to be edited again.
const maxHistory = 500

// history are the lines of the conversation, the oldest first. It implements term.History.
type history struct{ lines []string }

// Add implements term.History.
func (h *history) Add(line string) {
	if line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	if h.lines = append(h.lines, line); len(h.lines) > maxHistory {
		h.lines = slices.Delete(h.lines, 0, 1)
	}
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History.
func (h *history) At(n int) string { return h.lines[len(h.lines)-1-n] }
