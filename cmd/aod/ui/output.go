// Package ui is what a person or a program sees of a command: its two streams, tables, pages and the texts in them. It
// knows no command. It must not know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/terminal"
)

// Output is stdout or stderr, with what it is connected to.
type Output struct {
	io.Writer
	Terminal bool // a person looks at it
	colour   bool
	FD       int
	used     bool       // something was written
	writing  sync.Mutex // who follows a turn tells of it beside who answers its questions
}

// NewOutput returns a stream of the process.
func NewOutput(f *os.File) *Output {
	terminal := term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &Output{Writer: f, Terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "", FD: int(f.Fd())}
}

// Width returns the terminal's columns.
func (o *Output) Width() int {
	if columns, _, err := term.GetSize(o.FD); err == nil && columns > 0 {
		return columns
	}
	return 80
}

// ErrReaderGone is the error of a write that nobody reads: of `aod units | head`.
var ErrReaderGone = errors.New("the reader of the output has gone")

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.writing.Lock()
	defer o.writing.Unlock()
	o.used = true
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = ErrReaderGone
	}
	return n, err
}

// Line writes a line. It ignores a failed write: the reader has gone.
func (o *Output) Line(format string, args ...any) { _, _ = fmt.Fprintf(o, format+"\n", args...) }

// JSON writes a document: indented on a terminal, on one line for a program.
func (o *Output) JSON(document any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if o.Terminal {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	text := raw.Bytes()
	if o.Terminal {
		text = []byte(escapeControls(raw.String()))
	}
	_, err := o.Write(text)
	return err
}

// Foreign writes a stranger's text as it comes: as it is for a program, printable on a terminal.
func (o *Output) Foreign(write func(io.Writer) error) error {
	if !o.Terminal {
		return write(o)
	}
	w := transform.NewWriter(o, runes.Map(terminal.Visible))
	return errors.Join(write(w), w.Close())
}

// Fault prints an error and its hint.
func (o *Output) Fault(err error) {
	public := fault.Public(err)
	o.Line("%s %s%s", o.Style(Red, "aod:"), Printable(public.Msg), o.cause(public))
	o.Findings(unsaid(public.Findings, public.Msg))
	if public.Hint != "" {
		o.Line("  %s %s", o.Style(Dim, "hint:"), Printable(public.Hint))
	}
}

// toldFault is an error for a program.
type toldFault struct {
	Kind     string          `json:"kind"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// FaultJSON writes an error for a program that reads one document, unless that was written.
func (o *Output) FaultJSON(err error) {
	if o.used {
		return
	}
	public := fault.Public(err)
	_ = o.JSON(map[string]any{ // the reader may have gone
		"error":     toldFault{public.Kind.String(), public.Msg + o.cause(public), public.Hint, public.Findings},
		"exit_code": fault.ExitCode(err),
	})
}

// cause adds the part of an error that is private to a service's operator: here the user is
// the operator. A failed build has printed everything.
func (o *Output) cause(e *fault.Error) string {
	if e.Err == nil || e.Kind == fault.Build {
		return ""
	}
	return ": " + Printable(e.Err.Error())
}

// unsaid leaves out the first finding if the message says it already.
func unsaid(findings []fault.Finding, message string) []fault.Finding {
	if len(findings) > 0 && strings.Contains(message, findings[0].String()) {
		return findings[1:]
	}
	return findings
}

// Findings prints what is wrong, and how to mend it.
func (o *Output) Findings(findings []fault.Finding) {
	for _, f := range findings {
		mark := o.Style(Red, "✗")
		if f.Warning {
			mark = o.Style(Yellow, "!")
		}
		o.Line("  %s %s: %s", mark, Printable(f.Where()), Printable(f.Message))
		if f.Hint != "" {
			o.Line("      %s", o.Style(Dim, Printable(f.Hint)))
		}
	}
}

// The styles of a terminal (ECMA-48, SGR).
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Dim    = "2"
	Bold   = "1"
)

// Style gives a text one of the styles, where the stream has colours.
func (o *Output) Style(code, text string) string {
	if !o.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Printable removes every control character except line ends and tabs: a capsule must not
// move the user's cursor.
func Printable(text string) string { return terminal.Plain(text) }

// escapeControls writes the control characters that JSON permits in a string (U+007F to
// U+009F and those of direction) as JSON escapes: the document stays the same.
func escapeControls(document string) string {
	var b strings.Builder
	for _, r := range document {
		if r != '\n' && terminal.Obeys(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Through returns the same stream, written through another writer.
func (o *Output) Through(w io.Writer) *Output {
	return &Output{Writer: w, Terminal: o.Terminal, colour: o.colour, FD: o.FD}
}

// Plain returns the same stream without colours.
func (o *Output) Plain() *Output {
	return &Output{Writer: o, Terminal: o.Terminal, FD: o.FD}
}

// ExitError ends the program with an exit code of its own. The message has been printed
// already.
type ExitError int

// Error implements error.
func (e ExitError) Error() string { return "" }

// ExitFindings ends a command that succeeded and found something wrong.
const ExitFindings = ExitError(1)
