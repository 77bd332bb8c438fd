package main

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
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/agent-on-demand/aod/api/fault"
)

// output is stdout or stderr, with what it is connected to.
type output struct {
	io.Writer
	terminal bool
	colour   bool
	fd       int
	writing  sync.Mutex // who follows a turn tells of it beside who answers its questions
}

func newOutput(f *os.File) *output {
	terminal := term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &output{Writer: f, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "", fd: int(f.Fd())}
}

// width returns the terminal's columns.
func (o *output) width() int {
	if columns, _, err := term.GetSize(o.fd); err == nil && columns > 0 {
		return columns
	}
	return 80
}

// errReaderGone is the error of a write that nobody reads: of `aod units | head`.
var errReaderGone = errors.New("the reader of the output has gone")

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.writing.Lock()
	defer o.writing.Unlock()
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errReaderGone
	}
	return n, err
}

// line writes a line. It ignores a failed write: the reader has gone.
func (o *output) line(format string, args ...any) { _, _ = fmt.Fprintf(o, format+"\n", args...) }

// json writes a document: indented on a terminal, on one line for a program.
func (o *output) json(document any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if o.terminal {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	text := raw.Bytes()
	if o.terminal {
		text = []byte(escapeControls(raw.String()))
	}
	_, err := o.Write(text)
	return err
}

// foreign writes a stranger's text as it comes: as it is for a program, printable on a terminal.
func (o *output) foreign(write func(io.Writer) error) error {
	if !o.terminal {
		return write(o)
	}
	w := transform.NewWriter(o, runes.Map(printableRune))
	return errors.Join(write(w), w.Close())
}

// fault prints an error and its hint.
func (o *output) fault(err error) {
	public := fault.Public(err)
	o.line("%s %s%s", o.style(red, "aod:"), printable(public.Msg), o.cause(public))
	o.findings(unsaid(public.Findings, public.Msg))
	if public.Hint != "" {
		o.line("  %s %s", o.style(dim, "hint:"), printable(public.Hint))
	}
}

// cause adds the part of an error that is private to a service's operator: here the user is
// the operator. A failed build has printed everything.
func (o *output) cause(e *fault.Error) string {
	if e.Err == nil || e.Kind == fault.Build {
		return ""
	}
	return ": " + printable(e.Err.Error())
}

// unsaid leaves out the first finding if the message says it already.
func unsaid(findings []fault.Finding, message string) []fault.Finding {
	if len(findings) > 0 && strings.Contains(message, findings[0].String()) {
		return findings[1:]
	}
	return findings
}

func (o *output) findings(findings []fault.Finding) {
	for _, f := range findings {
		mark := o.style(red, "✗")
		if f.Warning {
			mark = o.style(yellow, "!")
		}
		o.line("  %s %s: %s", mark, printable(f.Where()), printable(f.Message))
		if f.Hint != "" {
			o.line("      %s", o.style(dim, printable(f.Hint)))
		}
	}
}

// The styles of a terminal (ECMA-48, SGR).
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

func (o *output) style(code, text string) string {
	if !o.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// printable removes every control character except line ends and tabs: a capsule must not
// move the user's cursor.
func printable(text string) string {
	return strings.Map(printableRune, text)
}

func printableRune(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return visible(r)
}

// visible maps control characters, and those that change the direction of text, to U+FFFD.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return unicode.ReplacementChar
	}
	return r
}

// escapeControls writes the control characters that JSON permits in a string (U+007F to
// U+009F and those of direction) as JSON escapes: the document stays the same.
func escapeControls(document string) string {
	var b strings.Builder
	for _, r := range document {
		if r != '\n' && visible(r) == unicode.ReplacementChar && r != unicode.ReplacementChar {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// bytesText formats a size for a person.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < 3 {
		value /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[prefix])
}

// plain returns the same stream without colours.
func (o *output) plain() *output {
	return &output{Writer: o, terminal: o.terminal, fd: o.fd}
}
