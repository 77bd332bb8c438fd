package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// ParseNode reads the only document of a file; nil when the file holds none. The finding is
// of its syntax.
func ParseNode(file string, raw []byte) (root *yaml.Node, finding *fault.Finding) {
	// The parser panics on some broken input instead of returning an error.
	defer func() {
		if recover() != nil {
			root, finding = nil, &fault.Finding{File: file, Line: 1, Message: "it isn't YAML", Hint: "check the syntax"}
		}
	}()
	raw = readable(raw)
	if root, finding = fromJSON(file, content(raw)); root != nil || finding != nil {
		return root, finding
	}
	if finding = doubtful(file, raw); finding != nil {
		return nil, finding
	}
	lines := &lineReader{rest: raw}
	decoder := yaml.NewDecoder(lines)
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxFinding(file, err, lines.culprit(raw))
	}
	err := decoder.Decode(&second)
	if err == nil {
		return nil, &fault.Finding{
			File: file, Line: second.Line, Message: "it holds more than one document",
			Hint: "keep one, without --- between",
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, syntaxFinding(file, err, lines.culprit(raw))
	}
	if n := tagged(first.Content[0]); n != nil {
		return nil, &fault.Finding{
			File: file, Line: n.Line, Message: "the tag " + fault.Quote(n.Tag) + " is not supported",
			Hint: "leave it out",
		}
	}
	return first.Content[0], nil
}

// tagged finds a list or an object that its tag makes something else; nil: there is none.
func tagged(n *yaml.Node) *yaml.Node {
	kind := map[yaml.Kind]string{yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}[n.Kind]
	if kind != "" && n.Tag != "" && n.ShortTag() != kind {
		return n
	}
	for _, each := range n.Content {
		if found := tagged(each); found != nil {
			return found
		}
	}
	return nil
}

var doubts = lazyregexp.New(`[\x{85}\x{2028}\x{2029}]|.\x{FEFF}|\n\x{FEFF}`)

// doubtful finds a character at which YAML 1.1, which the library reads, ends a line and YAML 1.2 doesn't, and a mark
// that nobody sees within a text.
func doubtful(file string, raw []byte) *fault.Finding {
	at := doubts().FindIndex(raw)
	if at == nil || !utf8.Valid(raw) { // UTF-16 is the library's to read
		return nil
	}
	c, _ := utf8.DecodeLastRune(raw[:at[1]])
	why := "at which some readers of YAML end a line and others don't"
	if c == '\ufeff' {
		why = "which nobody sees, and which belongs to the beginning of a file alone"
	}
	return &fault.Finding{
		File: file, Line: 1 + bytes.Count(raw[:at[1]], []byte("\n")),
		Message: fmt.Sprintf("it holds the character %U, %s", c, why),
		Hint:    fmt.Sprintf(`leave it out, or write it as "\u%04x" in double quotes`, c),
	}
}

var version = lazyregexp.New(`^(?:\x{FEFF})?(?:(?:[ \t]*(?:#.*)?|%.*)\r?\n)*%YAML[ \t]+1\.(\d+)`)

// readable returns a text in which the library takes the version: it refuses all but 1.1, and reads each by the same
// rules.
func readable(raw []byte) []byte {
	m := version().FindSubmatchIndex(raw)
	if m == nil {
		return raw
	}
	return slices.Concat(raw[:m[2]], []byte("1"), raw[m[3]:])
}

var beginning = lazyregexp.New(`^(?:\x{FEFF})?(?:(?:[ \t]*(?:#.*)?|%.*)\r?\n)*---[ \t\r\n]`)

// content is the document without what may stand before it, which keeps its lines.
func content(raw []byte) []byte {
	before := len(beginning().Find(raw))
	if before == 0 {
		return bytes.TrimPrefix(raw, []byte("\ufeff"))
	}
	return slices.Concat(bytes.Repeat([]byte("\n"), bytes.Count(raw[:before], []byte("\n"))), raw[before:])
}

// lineReader hands a text out line by line, and so knows how much of it was wanted.
type lineReader struct {
	rest []byte
	read int  // lines
	part bool // of the last line, only so much is read
}

func (r *lineReader) Read(into []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	line := r.rest
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i+1]
	}
	n := copy(into, line)
	if !r.part {
		r.read++
	}
	r.part = n < len(line)
	r.rest = r.rest[n:]
	return n, nil
}

// lookAhead is how many lines the library may read beyond the one that is wrong: a plain text
// may go on in the next one, and lines between may be empty.
const lookAhead = 5

// culprit returns the line after the longest beginning of a broken text that can be read; 0
// where that lies too far before the place at which the library stopped, as of an open quote.
// The library itself tells where the block begins that the line breaks.
func (r *lineReader) culprit(raw []byte) int {
	lines := bytes.SplitAfterN(raw, []byte("\n"), r.read+1)
	for last := min(r.read, len(lines)); last > max(0, r.read-lookAhead); last-- {
		if parses(bytes.Join(lines[:last-1], nil)) {
			return last
		}
	}
	return 0
}

func parses(raw []byte) (ok bool) {
	defer func() { ok = ok && recover() == nil }()
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func syntaxFinding(file string, err error, culprit int) *fault.Finding {
	text := err.Error()
	m := yamlLine().FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1]) // 0 where the parser knows none
	if culprit > 0 {
		line = culprit
	}
	message := "it isn't YAML: " + fault.Clip(strings.TrimPrefix(text, m[0]), 200)
	return &fault.Finding{File: file, Line: max(line, 1), Message: message, Hint: hintOf(text)}
}

// hints say what to write where the library's words tell what is wrong.
var hints = []struct{ words, hint string }{
	{"tab character", "indent with spaces"},
	{"anchor", "put a text that begins with * or & in quotes"},
	{"alphabetic or numeric", "put a text that begins with * or & in quotes"},
	{"hexdecimal", `in double quotes \ begins an escape: write \\, or take single quotes`},
	{"unknown escape", `in double quotes \ begins an escape: write \\, or take single quotes`},
	{"control characters", `write it as an escape in double quotes, such as "\u0007"`},
	{"UTF-8", "save the file as UTF-8"},
	{"mapping values", "put a text that has a colon and a space in it in quotes, or check the indentation"},
	{"start any token", "indent with spaces, and put a text that begins with @, % or ` in quotes"},
}

func hintOf(text string) string {
	for _, h := range hints {
		if strings.Contains(text, h.words) {
			return h.hint
		}
	}
	return "check the indentation (spaces, no tabs), the colons and the quotes"
}
