package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Names in messages and parts. What nobody interprets is left alone: the arguments of a tool
// call, schemas, what a model has cited.
var (
	urlNames = words("url image_url file_url video_url audio_url document_url server_url")
	idNames  = words("file_id file_ids container_id container vector_store_id vector_store_ids connector_id " +
		"previous_response_id")
	free  = words("parameters input_schema input_examples schema annotations citations arguments metadata")
	texts = words(`text content arguments input output name title context thinking reasoning reasoning_content refusal
		signature
		data id call_id tool_call_id tool_use_id description role status encrypted_content summary instructions`)
	// partTypes are those in which nothing is fetched, run or looked up. An address in them is
	// found by its own name.
	partTypes = words(`text input_text output_text refusal image_url input_image image input_audio file input_file
		document
		search_result thinking redacted_thinking tool_use tool_result message function custom function_call
		function_call_output custom_tool_call custom_tool_call_output reasoning summary_text reasoning_text
		base64 content url ephemeral text_editor_result`)
	toolTypes = words("function custom")
)

// outermost is the name of what has none: a text there is content, like any other.
const outermost = "text"

// scan goes once through a JSON text that was checked, and looks for breaches.
type scan struct {
	json  *strictjson.Cursor
	allow []string
	form  imageForm
	field string   // at the top, whose value the text is
	at    []string // names on the way to what is read
	child part     // the object that was read last
	text  []byte   // the string that was read last, with its quotes
	seen  seen
}

func (s *scan) tools() bool { return s.field == "tools" }

// all returns the first breach.
func (s *scan) all() *breach { return s.value(outermost) }

// value goes through a value that isn't a member of an object by itself.
func (s *scan) value(name string) *breach {
	switch s.json.Peek() {
	case '{':
		return s.object(name)
	case '[':
		return s.array(name)
	case '"':
		s.text = s.json.Value()
		return s.textBreach(name, s.text)
	}
	s.json.Value()
	return nil
}

func (s *scan) array(name string) (found *breach) {
	for range s.json.Elements() {
		if b := s.value(name); found == nil {
			found = b
		}
	}
	return found
}

func (s *scan) object(name string) *breach {
	var p part
	before := s.seen
	for key := range s.json.Members() {
		p.checkCase(key)
		s.member(&p, key)
	}
	s.child = p
	switch {
	case s.tools() && name == outermost:
		s.seen = before
		return s.toolBreach(p)
	case s.tools():
		return p.first()
	}
	s.weigh(p)
	return s.partBreach(p)
}

func (s *scan) member(p *part, key string) {
	start, before := s.json.Peek(), s.seen
	s.at, s.seen = append(s.at, key), seen{}
	b := s.value(key)
	inside := s.seen
	s.at, s.seen = s.at[:len(s.at)-1], before
	if b != nil {
		p.breaches = append(p.breaches, named{key, b})
	}
	switch {
	case key == "input":
		p.input = inside
	case !slices.Contains(free, key):
		s.seen.add(inside)
	}
	p.hasMedia = p.hasMedia || slices.Contains(mediaNames, key)
	p.cited = p.cited || key == "citations"
	switch start {
	case '{':
		p.takeObject(key, s.child, s.form)
	case '"':
		p.takeText(key, s.text, s.form)
	}
}

// toolBreach looks at one of the tools that the request offers.
func (s *scan) toolBreach(p part) *breach {
	if p.typ != "" && !slices.Contains(toolTypes, p.typ) {
		if allowsTool(s.allow, p.typ) {
			s.seen.opaque = true
			return nil
		}
		return &breach{rule: RuleTool, what: p.typ, open: openTool(p.typ)}
	}
	return p.first()
}

// openTool leaves out a version: what is left opens all of them.
func openTool(typ string) string {
	if i := strings.LastIndex(typ, "_20"); i > 0 {
		typ = typ[:i]
	}
	return strings.TrimSuffix(typ, "_preview")
}

// partBreach looks at a message, or at a part of one.
func (s *scan) partBreach(p part) *breach {
	if p.typ != "" && !slices.Contains(partTypes, p.typ) {
		if allows(s.allow, "part:"+p.typ) {
			s.seen.opaque = true
			return nil
		}
		return &breach{rule: RulePart, what: p.typ, open: "part:" + p.typ}
	}
	switch p.typ {
	case "tool_use":
		return p.first("input") // what a model has said to a tool
	case "search_result":
		return p.first("source") // where a text is from, for citations
	}
	return p.first()
}

// textBreach looks at a text, and at the ids and addresses that stand in place of content.
func (s *scan) textBreach(name string, raw []byte) *breach {
	switch {
	case slices.Contains(idNames, name):
		s.seen.opaque = true
		return s.unless("files", RuleFile, name)
	case bytes.HasPrefix(raw, []byte(`"data:`)) || slices.Contains(texts, name):
	case slices.Contains(urlNames, name) || isAddress(raw):
		return s.unless("remote_urls", RuleURL, name)
	}
	return nil
}

func (s *scan) unless(word, rule, what string) *breach {
	if allows(s.allow, word) {
		return nil
	}
	return &breach{rule: rule, what: what, open: word}
}

// isAddress reports whether a text in quotes begins like one, after spaces.
func isAddress(raw []byte) bool {
	const most = 64
	head := raw[1 : len(raw)-1]
	if bytes.IndexByte(head[:min(len(head), most)], '\\') >= 0 {
		head = []byte(strictjson.Text(raw))
	}
	head = bytes.TrimSpace(head[:min(len(head), most)])
	scheme, rest, ok := bytes.Cut(bytes.ToLower(head), []byte(":"))
	if !ok || len(scheme) == 0 {
		return false
	}
	return bytes.HasPrefix(rest, []byte("//")) || string(scheme) == "file"
}

// checkCase notes a name that a reader which doesn't look at its case takes for one that matters. It is
// a breach of the object that it stands in: in a schema, or in the input of a tool, it is anybody's.
func (p *part) checkCase(key string) {
	if p.odd || !strings.ContainsFunc(key, func(c rune) bool { return c < 'a' || c > 'z' }) {
		return // one is enough, of the many ways to write a long one
	}
	for _, names := range [][]string{urlNames, idNames, {"type", "source", "data"}} {
		for _, name := range names {
			if name != key && strings.EqualFold(name, key) {
				p.odd = true
				p.breaches = append(p.breaches, named{key, &breach{rule: RuleField, what: key, meant: name}})
			}
		}
	}
}
