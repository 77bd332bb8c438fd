package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

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
	return first.Content[0], nil
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
	return &fault.Finding{
		File: file, Line: max(line, 1), Message: message,
		Hint: "check the indentation (spaces, no tabs), the colons and the quotes",
	}
}
