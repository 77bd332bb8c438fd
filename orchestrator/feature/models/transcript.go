package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const (
	maxTranscript = 16 << 20          // bytes of the file, beyond which it has figures alone
	maxFigures    = 4 * maxTranscript // bytes of the file that are read
)

// transcript keeps the model calls of a run, a JSON object a line: their figures, and unless
// that is off, what was asked and answered. Of a conversation that grows, each line holds what
// came after an earlier line.
type transcript struct {
	path string

	conversations gateway.Conversations

	mu   sync.Mutex
	n    int64 // of the latest request
	size int64
	full bool // it has figures alone from now on
}

// prefix says which messages come before those of a request: so many of an earlier one.
type prefix struct {
	N        int `json:"n"`
	Messages int `json:"messages"`
}

// exchange is a line of the file.
type exchange struct {
	api.ModelCall
	ID      string          `json:"id"`               // of the call in the books
	Prefix  *prefix         `json:"prefix,omitempty"` // its messages come before those of the request
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"` // a text where it isn't JSON, such as a stream
	Cut     bool            `json:"cut,omitempty"`    // the answer, or all of it, was too long
}

func newTranscript(runDir string) *transcript { return &transcript{path: transcriptIn(runDir)} }

func transcriptIn(runDir string) string { return filepath.Join(runDir, layout.Transcript) }

// add numbers a call, and keeps what was asked and answered if it has that.
func (t *transcript) add(c api.ModelCall, e gateway.Exchange) (n int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	c.N = t.n
	line := exchange{ModelCall: c, ID: e.Call.ID, Cut: e.Cut, Answer: jsonOf(e.Answer)}
	if e.Request != nil && !t.full {
		folded := t.conversations.Fold(int(t.n), e.Request)
		if line.Request = jsonOf(folded.Body); folded.Call > 0 {
			line.Prefix = &prefix{N: folded.Call, Messages: folded.Messages}
		}
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return t.n, errors.New("it can't be written as JSON")
	}
	return t.n, t.write(raw, line)
}

// write appends a line. One that has no room is written without what was asked and answered,
// and so are those after it.
func (t *transcript) write(raw []byte, line exchange) (err error) {
	if t.size+int64(len(raw)) >= maxTranscript {
		t.full = true
		line.Request, line.Answer, line.Prefix, line.Cut = nil, nil, nil, true
		if raw, err = json.Marshal(line); err != nil {
			return err
		}
	}
	if t.size+int64(len(raw)) >= maxFigures {
		return nil
	}
	file, err := safefs.OpenAppend(t.path)
	if err != nil {
		return err
	}
	n, err := file.Write(append(raw, '\n'))
	t.size += int64(n)
	return errors.Join(err, file.Close())
}

// restore continues an earlier process's transcript, without an incomplete last line. do is
// called for each line that is whole.
func (t *transcript) restore(do func(exchange)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole, err := eachExchange(t.path, func(line exchange) bool {
		t.n = line.N
		do(line)
		return true
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Truncate(t.path, whole)
	}
	t.size, t.full = whole, err != nil
	return err
}

// jsonOf returns a document as it is, and anything else as a text.
func jsonOf(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if json.Valid(raw) {
		return raw
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return nil // a text can't fail
	}
	return text
}

// eachExchange calls do for each line of a transcript until it returns false. A last line that
// isn't whole is left out: it is being written, or its process died. whole is how many bytes
// come before it.
func eachExchange(path string, do func(exchange) bool) (whole int64, err error) {
	err = safefs.EachLine(path, maxFigures, func(raw []byte) (bool, error) {
		var line exchange
		if json.Unmarshal(raw, &line) != nil {
			return false, errBadTranscript
		}
		whole += int64(len(raw))
		return do(line), nil
	})
	return whole, err
}

var errBadTranscript = errors.New("the file of the model calls is damaged")

// ReadCalls returns the figures of a run's model calls, which are in its directory.
func ReadCalls(runDir string) ([]api.ModelCall, error) {
	page, err := ReadCallPage(runDir, 0, 0)
	return page.Calls, err
}

// ReadCallPage is ReadCalls for those with a higher number than after: at most limit of them, or all where it is 0.
func ReadCallPage(runDir string, after int64, limit int) (api.ModelCallPage, error) {
	page := api.ModelCallPage{Calls: []api.ModelCall{}}
	err := safefs.EachLine(transcriptIn(runDir), maxFigures, func(raw []byte) (bool, error) {
		if n := numberOf(raw); n > 0 && n <= after {
			return true, nil
		}
		if limit > 0 && len(page.Calls) == limit {
			page.Next = &page.Calls[limit-1].N
			return false, nil
		}
		var call api.ModelCall
		if json.Unmarshal(raw, &call) != nil {
			return false, errBadTranscript
		}
		page.Calls = append(page.Calls, call)
		return true, nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the file it asked for nothing
		return api.ModelCallPage{}, run.StorageFault(err)
	}
	return page, nil
}

// numberOf returns the number with which a line begins, without a look at what was asked and answered.
func numberOf(raw []byte) int64 {
	head, found := bytes.CutPrefix(raw, []byte(`{"n":`))
	digits, _, ends := bytes.Cut(head, []byte(","))
	if !found || !ends {
		return 0
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ReadExchange returns what a run asked with its n-th call of a model, and the answer, whole.
// The error is a NotFound fault where that isn't kept.
func ReadExchange(runDir string, n int64) (api.ModelExchange, error) {
	lines := map[int64]exchange{}
	_, err := eachExchange(transcriptIn(runDir), func(line exchange) bool {
		lines[line.N] = line
		return line.N < n
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return api.ModelExchange{}, run.StorageFault(err)
	}
	line, found := lines[n]
	if !found {
		return api.ModelExchange{}, fault.New(fault.NotFound, "the run has no model call %d", n).
			WithHint("aod runs ID --models lists them")
	}
	if line.Request == nil {
		return api.ModelExchange{}, fault.New(fault.NotFound, "what was asked with this call isn't kept").
			WithHint("transcripts are off by `transcript: false` in agent.yaml, or by the setting model_transcripts, " +
				"and hold 16 MiB")
	}
	request, err := whole(lines, line)
	if err != nil {
		return api.ModelExchange{}, run.StorageFault(err)
	}
	return api.ModelExchange{ModelCall: line.ModelCall, Request: request, Answer: line.Answer, Cut: line.Cut}, nil
}

// whole returns the request of a line with the messages that earlier lines hold.
func whole(lines map[int64]exchange, line exchange) (json.RawMessage, error) {
	return gateway.Unfold(line.folded(), func(n int) (gateway.Folded, error) {
		earlier, known := lines[int64(n)]
		if !known || earlier.N >= line.N || earlier.Request == nil {
			return gateway.Folded{}, errBadTranscript
		}
		return earlier.folded(), nil
	})
}

func (e exchange) folded() gateway.Folded {
	f := gateway.Folded{Body: e.Request}
	if e.Prefix != nil {
		f.Call, f.Messages = e.Prefix.N, e.Prefix.Messages
	}
	return f
}
