package gateway

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// meter reads the usage of an answer beside it.
type meter struct {
	dialect catalog.Dialect
	usage   Usage
	known   bool // the provider has said what all of it took
	input   bool // it has said what was read
	ended   bool // a stream has said why it ends
	spoken  bool // a stream of responses has said a word
	about   About
}

// maxCount is a count of tokens that no provider reaches.
const maxCount = 1 << 40

// plain reads an answer that isn't streamed.
func (m *meter) plain(body []byte) {
	m.take(usageIn(body), true)
	m.about.whole(m.dialect, body)
}

// usageIn finds the counts of a plain answer or of a chunk. Groq's streams have them in a field of its own.
func usageIn(object []byte) []byte {
	if usage := member(object, "usage"); !isNull(usage) {
		return usage
	}
	return member(object, "x_groq", "usage")
}

// take reads a usage object. final says that the counts are those of the whole answer. A zero takes
// nothing back, and a detail that can't be read is lost alone.
func (m *meter) take(object []byte, final bool) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	counted := m.readCounts(&m.usage, func(into *int64, path ...string) bool {
		n, ok := countOf(member(object, path...))
		if ok && n > 0 {
			*into = n
		}
		return ok
	})
	if u := &m.usage; u.Cached+u.CacheWrite > u.Input {
		u.Cached, u.CacheWrite = 0, 0
	}
	m.known = m.known || final && counted
}

// countOf reads a count of tokens, which some servers write as 10.0 or "10".
func countOf(value []byte) (int64, bool) {
	text := string(value)
	if len(value) > 0 && value[0] == '"' {
		text = strings.TrimSpace(textOf(value))
	}
	n, err := strconv.ParseFloat(text, 64)
	return int64(n), err == nil && n >= 0 && n < maxCount && n == math.Trunc(n)
}

// readCounts reports whether the counts are there that every answer has.
func (m *meter) readCounts(u *Usage, read func(*int64, ...string) bool) bool {
	switch m.dialect {
	case catalog.Messages:
		return m.readMessages(u, read)
	case catalog.Responses:
		read(&u.Cached, "input_tokens_details", "cached_tokens")
		read(&u.Reasoning, "output_tokens_details", "reasoning_tokens")
		input, output := read(&u.Input, "input_tokens"), read(&u.Output, "output_tokens")
		return input && output
	case catalog.Embeddings:
		return read(&u.Input, "prompt_tokens") || read(&u.Input, "total_tokens")
	}
	_ = read(&u.Cached, "prompt_tokens_details", "cached_tokens") ||
		read(&u.Cached, "prompt_cache_hit_tokens") || // DeepSeek's
		read(&u.Cached, "cached_tokens")
	read(&u.Reasoning, "completion_tokens_details", "reasoning_tokens")
	input, output := read(&u.Input, "prompt_tokens"), read(&u.Output, "completion_tokens")
	return input && output
}

// readMessages adds what was cached to the input, which doesn't hold it there.
func (m *meter) readMessages(u *Usage, read func(*int64, ...string) bool) bool {
	plain := u.Input - u.Cached - u.CacheWrite
	m.input = read(&plain, "input_tokens") || m.input
	read(&u.Cached, "cache_read_input_tokens")
	read(&u.CacheWrite, "cache_creation_input_tokens")
	u.Input = plain + u.Cached + u.CacheWrite
	return read(&u.Output, "output_tokens") && m.input
}

// what an event of a stream is.
type what uint8

const (
	nothing   what = iota // a comment, a ping, an empty one
	opening               // that an answer begins, and nothing of it
	content               // or anything else that a client reads
	failed                // an error
	usageOnly             // the counts that were asked for by the gateway, perhaps
	terminal              // the last one
)

// event reads an event of a stream.
func (m *meter) event(raw []byte) what {
	data := eventData(raw)
	switch {
	case len(data) == 0 || isPing(data):
		return nothing
	case bytes.Contains(data, []byte(`"error"`)) && problemIn(data) != nil:
		return failed
	case m.dialect == catalog.Messages:
		return m.messagesEvent(data)
	case m.dialect == catalog.Responses:
		return m.responsesEvent(data)
	}
	return m.chatEvent(data)
}

// isPing is true of a sign of life, which some servers send in every dialect.
func isPing(data []byte) bool {
	const most = 64
	return len(data) < most && bytes.Contains(data, []byte(`"ping"`)) && textOf(member(data, "type")) == "ping"
}

func (m *meter) chatEvent(data []byte) what {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return terminal
	}
	m.about.event(m.dialect, data)
	usage, choices := usageIn(data), member(data, "choices")
	m.take(usage, true)
	if !isNull(usage) && isEmptyList(choices) {
		m.ended = true
		return usageOnly
	}
	return m.choices(choices)
}

// choices reads the choices of a chunk: one that says who speaks, and nothing else, is no content.
func (m *meter) choices(list []byte) what {
	kind := content
	for choice := range strictjson.Elements(list) {
		m.ended = m.ended || !isNull(member(choice, "finish_reason"))
		kind = opening
		said := member(choice, "delta", "role") != nil
		for name, value := range strictjson.Members(member(choice, "delta")) {
			said = said && (name == "role" || isNull(value) || string(value) == `""`)
		}
		if !said {
			return content
		}
	}
	if m.ended {
		return content
	}
	return kind
}

func isEmptyList(value []byte) bool {
	return len(value) > 1 && value[0] == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

func (m *meter) messagesEvent(data []byte) what {
	switch textOf(member(data, "type")) {
	case "message_start":
		m.take(member(data, "message", "usage"), false)
		m.about.event(m.dialect, data)
		return opening
	case "message_delta":
		m.take(member(data, "usage"), true)
		m.about.event(m.dialect, data)
		m.ended = true
	case "message_stop":
		return terminal
	}
	return content
}

func (m *meter) responsesEvent(data []byte) what {
	if m.spoken && !bytes.Contains(data, []byte(`"response.completed"`)) &&
		!bytes.Contains(data, []byte(`"response.incomplete"`)) &&
		!bytes.Contains(data, []byte(`"response.failed"`)) {
		return content
	}
	switch textOf(member(data, "type")) {
	case "response.failed":
		m.endResponse(data)
		return failed
	case "response.completed", "response.incomplete":
		m.endResponse(data)
		return terminal
	case "response.created", "response.queued", "response.in_progress":
		return opening
	case "response.output_item.added":
		if opensItem(member(data, "item")) {
			return opening
		}
	case "response.content_part.added", "response.reasoning_summary_part.added":
		if part := member(data, "part"); textOf(member(part, "text")) == "" && member(part, "refusal") == nil {
			return opening
		}
	}
	m.spoken = true
	return content
}

func (m *meter) endResponse(data []byte) {
	m.take(member(data, "response", "usage"), true)
	m.about.event(m.dialect, data)
}

// opensItem reports whether an item of an answer has no word yet: a message without content, or thoughts.
func opensItem(item []byte) bool {
	switch textOf(member(item, "type")) {
	case "message":
		return !isFilledList(member(item, "content"))
	case "reasoning":
		return true
	}
	return false
}

// isAnswer reports whether a plain answer has what a client reads.
func (m *meter) isAnswer(body []byte) bool {
	switch m.dialect {
	case catalog.Messages:
		return bytes.HasPrefix(member(body, "content"), []byte("["))
	case catalog.Responses:
		return bytes.HasPrefix(member(body, "output"), []byte("["))
	case catalog.Embeddings:
		return isFilledList(member(body, "data"))
	}
	for choice := range strictjson.Elements(member(body, "choices")) {
		return !isNull(choice)
	}
	return false
}

// problemIn returns what an answer, or an event of one, says that went wrong: all of it, or one of its choices;
// nil: nothing did.
func problemIn(object []byte) []byte {
	if problem := member(object, "error"); !isBlank(problem) {
		return problem
	}
	if textOf(member(object, "type")) == "error" || textOf(member(object, "object")) == "error" {
		return object
	}
	for choice := range strictjson.Elements(member(object, "choices")) {
		if problem := member(choice, "error"); !isBlank(problem) {
			return problem
		}
	}
	return nil
}

// isBlank reports whether a value says nothing: some servers write an error that is none as "" or {}.
func isBlank(value []byte) bool {
	return len(value) == 0 || slices.Contains([]string{"null", "false", "0", `""`, "{}", "[]"}, string(value))
}

func isFilledList(value []byte) bool { return len(value) > 0 && value[0] == '[' && !isEmptyList(value) }

// textOf reads a JSON text; of anything else it is "".
func textOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' || strictjson.Check(value, strictjson.Rules{Ambiguous: true}) != nil {
		return ""
	}
	return strictjson.Text(value)
}

// About is what a provider says of its answer, beside its content and its usage.
type About struct {
	ID, Model string   // "" where it says nothing, or no plain name
	Reasons   []string // why it ended
}

// whole reads an answer that isn't streamed, or the object of one that stands in an event.
func (a *About) whole(d catalog.Dialect, body []byte) {
	a.names(body)
	switch d {
	case catalog.Chat:
		a.choices(member(body, "choices"))
	case catalog.Responses:
		a.reason(member(body, "status"))
	case catalog.Messages:
		a.reason(member(body, "stop_reason"))
	}
}

func (a *About) names(object []byte) {
	a.ID, a.Model = plainName(member(object, "id")), plainName(member(object, "model"))
}

// event reads an event of a stream: its first one, and those that say why it ended.
func (a *About) event(d catalog.Dialect, data []byte) {
	switch d {
	case catalog.Chat:
		if a.Model == "" {
			a.names(data)
		}
		if bytes.Contains(data, []byte(`"finish_reason":"`)) || bytes.Contains(data, []byte(`"finish_reason": "`)) {
			a.choices(member(data, "choices"))
		}
	case catalog.Responses:
		a.whole(d, member(data, "response"))
	case catalog.Messages:
		if message := member(data, "message"); message != nil {
			a.names(message)
		}
		a.reason(member(data, "delta", "stop_reason"))
	}
}

func (a *About) choices(list []byte) {
	for choice := range strictjson.Elements(list) {
		a.reason(member(choice, "finish_reason"))
	}
}

func (a *About) reason(value []byte) {
	if name := plainName(value); name != "" && len(a.Reasons) < maxChoices {
		a.Reasons = append(a.Reasons, name)
	}
}

// plainName returns a JSON text that is a name as providers give them, "" for any other.
func plainName(value []byte) string {
	const most = 128
	const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@-"
	if len(value) > most {
		return ""
	}
	name := textOf(value)
	if strings.Trim(name, signs) != "" {
		return ""
	}
	return name
}
