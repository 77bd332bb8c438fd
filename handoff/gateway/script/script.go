// Package script is a provider of models that answers from a file: for demonstrations, for
// guides and for tests, without a key, a network or a model.
//
// Read reads the file: a list of answers, or a map with `answers`, `repeat` and `shared`. Script.Answer
// gives each run the answers from the first one on, or all runs together, in the dialect that is asked and as a
// stream where one is asked for.
//
// It knows the shapes of answers in each dialect, and nothing of who asks.
//
// Its Go API may change with every release: see docs/stability.md.
package script

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Script gives the same answers to each run, unless they share them. It is safe for concurrent use.
type Script struct {
	steps  []step
	repeat bool   // from the first one on, when all were given
	shared bool   // each answer is for one run alone, whichever asks next
	none   string // what is said when none is left

	mu   sync.Mutex
	runs map[string]int // how many answers each run had
}

// None returns a script without answers, which says why to whoever asks.
func None(why string) *Script { return &Script{none: why, runs: map[string]int{}} }

// maxRuns is how many runs a script remembers; then it forgets all of them.
const maxRuns = 10_000

// Answer gives the next answer for a run. The dialect is chat, responses, messages or
// embeddings; embeddings are made of the text, and take no step. It waits as long as the
// answer says; the error is the cause of ctx's end.
func (s *Script) Answer(ctx context.Context, run, dialect string, body []byte) (*http.Response, error) {
	ask := readRequest(dialect, body)
	if dialect == "embeddings" {
		return reply(http.StatusOK, typeJSON, ask.embeddings(body)), nil
	}
	st, ok := s.next(run)
	if !ok {
		st = step{
			status:  http.StatusBadRequest,
			message: cmp.Or(s.none, "the script has no answer left: it has "+strconv.Itoa(len(s.steps))),
		}
	}
	if err := pause.For(ctx, st.pause); err != nil {
		return nil, err
	}
	if st.status >= http.StatusBadRequest {
		return failure(dialect, st), nil
	}
	if st.usage == nil {
		st.usage = &usage{int64(len(body)/4 + 1), int64((len(st.reasoning)+len(st.text))/4 + 1 + 8*len(st.calls))}
	}
	if ask.stream {
		return reply(http.StatusOK, "text/event-stream", ask.streamed(st)), nil
	}
	return reply(http.StatusOK, typeJSON, encode(ask.whole(st))), nil
}

func (s *Script) next(run string) (step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) >= maxRuns {
		clear(s.runs)
	}
	if s.shared {
		run = ""
	}
	n := s.runs[run]
	s.runs[run]++
	if s.repeat {
		n %= len(s.steps)
	}
	if n >= len(s.steps) {
		return step{}, false
	}
	return s.steps[n], true
}

// request is what a script looks at.
type request struct {
	dialect, model string
	stream, usage  bool
}

func readRequest(dialect string, body []byte) request {
	r := request{dialect: dialect}
	v, _ := strictjson.Decode(body)
	object, _ := v.(map[string]any)
	r.model, _ = object["model"].(string)
	r.stream, _ = object["stream"].(bool)
	options, _ := object["stream_options"].(map[string]any)
	r.usage, _ = options["include_usage"].(bool)
	return r
}

const typeJSON = "application/json"

func reply(status int, media string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {media}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func failure(dialect string, st step) *http.Response {
	problem := object{"type": "script_error", "message": st.message, "code": strconv.Itoa(st.status)}
	body := object{"error": problem}
	if dialect == "messages" {
		body["type"] = "error"
	}
	r := reply(st.status, typeJSON, encode(body))
	if st.retryAfter > 0 {
		r.Header.Set("Retry-After", strconv.Itoa(int((st.retryAfter+time.Second-1)/time.Second)))
	}
	return r
}

type (
	object = map[string]any
	array  = []any
)

func encode(v any) []byte {
	raw, _ := strictjson.Encode(v) // texts and numbers can be written
	return raw
}
