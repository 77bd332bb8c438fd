package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	// MaxOutput bounds the output of a program in bytes, where it is a JSON document a line.
	// The other formats are read up to the limit of a result.
	MaxOutput = 64 << 20
	maxLine   = 8 << 20 // of an output in lines; a longer one is left out
	maxLines  = 1 << 20 // likewise
	maxNote   = 4 << 10 // of a session's id, of what is told of the usage, and of why it failed
)

// Output is what the output of a program says.
type Output struct {
	Text    string
	Value   any             // what Result.Text found, or the whole document; nil with format: text
	Session string          // "" where it tells none
	Usage   json.RawMessage // as the program tells it; nil where it doesn't
	CostUSD json.Number     // "" where it doesn't tell
	Failed  bool            // Result.Error was found
	Reason  string          // what was found there; "" where that says nothing
	Skipped int             // lines that aren't JSON documents, or too long
}

// OutputError says why an output isn't what agent.yaml says. It quotes nothing of it.
type OutputError struct{ Message, Hint string }

func (e *OutputError) Error() string { return e.Message }

func wrongOutput(hint, format string, args ...any) *OutputError {
	return &OutputError{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// ReadOutput reads the output of a program, as Config.Result says, and at most that many bytes
// of a text or a document. The error is an *OutputError, or r's.
func ReadOutput(c *Config, r io.Reader, limit int64) (Output, error) {
	if c.Result.Format == JSONL {
		return readLines(c.Result, r, limit)
	}
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return Output{}, err
	}
	if int64(len(raw)) > limit {
		return Output{}, tooMuch(limit)
	}
	if c.Result.Format != JSON {
		return Output{Text: cleanText(string(raw))}, nil
	}
	document, err := decode(raw)
	if err != nil {
		return Output{}, wrongOutput("agent.result.format says what the program prints: text, json or jsonl",
			"its output is not one JSON document%s", placeOf(err))
	}
	found := finds{of: c.Result}
	found.note(document)
	return found.output(limit)
}

// DocumentIn returns the JSON document that a text is; nil: it is none.
func DocumentIn(text string) any {
	document, err := decode([]byte(text))
	if err != nil {
		return nil
	}
	return document
}

// placeOf says where a text stops being a document. Names in it are the program's.
func placeOf(err error) string {
	var wrong *strictjson.Error
	if !errors.As(err, &wrong) {
		return ""
	}
	return fmt.Sprintf(" (line %d, column %d)", wrong.Line, wrong.Column)
}

func tooMuch(limit int64) *OutputError {
	return wrongOutput("large results go to files in /io/output", "its output has more than %d bytes", limit)
}

// cleanText makes a text of what a program printed: UTF-8, without NUL bytes, and without the
// ends of the last line.
func cleanText(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.TrimRight(strings.ReplaceAll(s, "\x00", ""), "\r\n")
}

// finds are the values that were found last.
type finds struct {
	of                          Result
	text, session, usage, cost  any
	structured                  any // that the last result of a CLI has beside its text; nil: it has none
	hasText, hasError, hasUsage bool
	reason                      any
	skipped                     int
}

// note looks for all that is wanted in one document.
func (f *finds) note(document any) {
	text := f.of.Text
	if text == nil {
		text = &Pick{}
	}
	if value, ok := text.in(document); ok {
		f.text, f.hasText = value, true
	}
	f.noteStructured(document)
	if value, ok := f.of.Session.in(document); ok {
		f.session = value
	}
	if value, ok := f.of.Usage.in(document); ok {
		f.usage, f.hasUsage = value, true
	}
	if value, ok := f.of.CostUSD.in(document); ok {
		f.cost = value
	}
	if value, ok := f.of.Error.in(document); ok {
		f.reason, f.hasError = value, true
	}
}

// noteStructured takes what a result has that keeps a schema which the program was given, wherever
// the text is. A list of messages ends with the result.
func (f *finds) noteStructured(document any) {
	messages, is := document.([]any)
	if !is {
		messages = []any{document}
	}
	for _, message := range messages {
		if textAt(message, "type") == "result" {
			f.structured = at(message, structuredOutput)
		}
	}
}

// structuredOutput is the field of a result in the formats of claude-code.
const structuredOutput = "structured_output"

// output makes the output of what was found. A program that says itself that it failed needs
// no text.
func (f *finds) output(limit int64) (Output, error) {
	if f.structured != nil {
		f.text, f.hasText = f.structured, true
	}
	o := Output{Failed: f.hasError, Skipped: f.skipped, Value: f.text, Text: cleanText(text(f.text))}
	o.Reason = clip(cleanText(reasonOf(f.reason)))
	if !f.hasText && !f.hasError {
		return o, wrongOutput("see agent.result.text in agent.yaml",
			"nothing in its output is what agent.result.text looks for")
	}
	if int64(len(o.Text)) > limit {
		return o, tooMuch(limit)
	}
	if id := text(f.session); len(id) <= maxNote && utf8.ValidString(id) && !strings.ContainsRune(id, 0) {
		o.Session = id
	}
	if f.hasUsage {
		o.Usage = usageOf(f.usage)
	}
	o.CostUSD = costOf(f.cost)
	return o, nil
}

// usageOf returns what a program tells of its usage; nil where that is too long, or has a number
// that not every reader can read.
func usageOf(told any) json.RawMessage {
	raw, err := strictjson.Encode(told)
	if err != nil || len(raw) > maxNote || strictjson.Check(raw, strictjson.Rules{}) != nil {
		return nil
	}
	return raw
}

// costOf returns what a program tells of its cost; "" where that isn't an amount of money.
func costOf(told any) json.Number {
	cost, ok := told.(json.Number)
	if n, err := cost.Float64(); !ok || err != nil || n < 0 || len(cost) > maxID {
		return ""
	}
	return cost
}

// clip cuts a text for a message at the beginning of a character.
func clip(s string) string {
	if len(s) <= maxNote {
		return s
	}
	return strings.ToValidUTF8(s[:maxNote], "")
}
