// Package translate has a model asked in one dialect that answers in another one: Chat Completions,
// Responses and Messages, each in each.
//
// The main path, in call order:
//
//	New                 a request is read into the neutral form, and written in the other dialect
//	Translation.Answer  a plain answer, back
//	Translation.Stream  a stream, back: Stream.Event for what each event says, Stream.End after the last
//
// Each dialect has a reader and a writer of requests, of answers and of streams, in files of its name. What
// the other dialect can't say is an *Error with a JSON pointer to the field, and is never dropped: whoever
// asks decides. Of answers the thoughts of a model, and what stands beside the content, are left out.
//
// It knows no HTTP, no provider and no usage but what it is handed.
//
// Its Go API may change with every release: see docs/stability.md.
package translate

import (
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Error says what can't be said in the other dialect.
type Error struct {
	Path string // a JSON pointer into the request, or into the answer or the event
	Why  string // such as "it has no word for it"
}

func (e *Error) Error() string { return strings.TrimSpace(e.Path + " " + e.Why) }

// Usage is what an answer took, in tokens: Input with what was cached and written to the cache, Output with
// Reasoning.
type Usage struct{ Input, Cached, CacheWrite, Output, Reasoning int64 }

// Translation is one request in two dialects.
type Translation struct {
	Body []byte // of the request, in the provider's dialect

	asker, provider catalog.Dialect
	usage           bool              // the asker wants the counts of a stream
	echo            map[string][]byte // fields of the asker's, which an answer of its dialect repeats
}

// Between reports whether one dialect can be translated to the other.
func Between(asker, provider catalog.Dialect) bool {
	return dialects[asker] != nil && dialects[provider] != nil
}

// dialect is how requests and answers are read and written in one.
type dialect struct {
	readRequest  func(*fields) *request
	writeRequest func(*request) object
	readAnswer   func(*fields) *answer
	writeAnswer  func(*answer) object
	readEvents   func() eventReader
	writeEvents  func(*Stream) eventWriter
}

var dialects = map[catalog.Dialect]*dialect{
	catalog.Chat: {
		readChat, writeChat, readChatAnswer, writeChatAnswer,
		func() eventReader { return &chatReader{} },
		func(s *Stream) eventWriter { return &chatWriter{stream: s} },
	},
	catalog.Responses: {
		readResponses, writeResponses, readResponse, writeResponse,
		func() eventReader { return &responsesReader{} },
		func(s *Stream) eventWriter { return &responsesWriter{stream: s} },
	},
	catalog.Messages: {
		readMessages, writeMessages, readMessage, writeMessage,
		func() eventReader { return &messagesReader{} },
		func(s *Stream) eventWriter { return &messagesWriter{stream: s} },
	},
}

// New translates a request, which is one object of checked JSON, from the asker's dialect to the provider's.
// Both have to be Between. The error is an *Error.
func New(asker, provider catalog.Dialect, body []byte) (*Translation, error) {
	t := &Translation{asker: asker, provider: provider, echo: map[string][]byte{}}
	bad := &problems{}
	if asker == catalog.Messages {
		bad.marks = "cache_control" // others cache by themselves, or don't
	}
	root := value{bad: bad, raw: body}.object()
	for _, name := range echoed {
		t.echo[name] = root.left[name]
	}
	q := dialects[asker].readRequest(root)
	root.done()
	q.check(asker, provider)
	written := dialects[provider].writeRequest(q)
	if bad.first != nil {
		return nil, bad.first
	}
	t.usage, t.Body = q.usage, encode(written)
	return t, nil
}

// Answer translates a plain answer back. usage is what the provider counted; nil: it says nothing. The error
// is an *Error, with a pointer into the answer.
func (t *Translation) Answer(body []byte, usage *Usage) ([]byte, error) {
	bad := &problems{answers: true}
	a := dialects[t.provider].readAnswer(value{bad: bad, raw: body}.object())
	a.settle()
	a.usage, a.echo = usage, t.echo
	written := dialects[t.asker].writeAnswer(a)
	if bad.first != nil {
		return nil, bad.first
	}
	return encode(written), nil
}

// echoed are fields of a request that an answer of Responses repeats.
var echoed = []string{
	"instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "reasoning", "temperature", "text",
	"tool_choice", "tools", "top_p", "user",
}

type (
	object = map[string]any
	array  = []any
)

func encode(v any) []byte {
	raw, _ := strictjson.Encode(v) // texts, numbers and checked JSON can be written
	return raw
}

func oneOf(text string, of ...string) bool { return slices.Contains(of, text) }
