package capsuleapi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// handoffs answers what a run asks for and of its calls.
type handoffs struct {
	responder responder
	broker    *handoff.Broker
	runs      handoff.Runs
	bodyBytes int64
	ignored   ignored
}

func (h *handoffs) post(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "wait", "recall")
	if err != nil {
		return err
	}
	recall, err := recallIn(query)
	if err != nil {
		return err
	}
	wait, err := waitIn(query, wait{untilEnd: true})
	if err != nil {
		return err
	}
	var foreign bool
	var unreadable error
	id, err := h.broker.StartRead(r.Context(), func() (asked handoff.Request, err error) {
		asked, foreign, unreadable = h.readRequest(w, r)
		if asked.Recall = recall; recall && asked.Key == "" && unreadable == nil {
			unreadable = fault.New(fault.BadRequest, "a call can't be recalled without a key").
				WithHint("send the header Idempotency-Key")
		}
		return asked, unreadable
	})
	switch {
	case foreign && wait.untilEnd && !httpwire.WantsProblem(r):
		return h.answerForeign(w, r, id, unreadable, err)
	case err != nil:
		return err
	}
	return h.answerWith(w, r, id, wait)
}

func (h *handoffs) get(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "wait")
	if err != nil {
		return err
	}
	wait, err := waitIn(query, wait{})
	if err != nil {
		return err
	}
	id, err := handoffID(r)
	if err != nil {
		return err
	}
	return h.answerWith(w, r, id, wait)
}

// delete cancels a call. One that has ended stays as it is.
func (h *handoffs) delete(w http.ResponseWriter, r *http.Request) error {
	id, err := handoffID(r)
	if err != nil {
		return err
	}
	result, err := h.broker.Cancel(r.Context(), id, "cancelled by its caller")
	if err != nil {
		return err
	}
	return h.responder.reply(w, r, http.StatusAccepted, unfinished{id, result.State})
}

// unfinished is the answer for a call that goes on.
type unfinished struct {
	ID    string `json:"handoff_id"`
	State string `json:"state"`
}

// finished is the answer for a call that has ended.
type finished struct {
	ID      string               `json:"handoff_id"`
	State   string               `json:"state"`
	Success bool                 `json:"success"`
	Output  json.RawMessage      `json:"output"`
	Files   []handoff.PlacedFile `json:"files"`
	Error   *handoff.Failure     `json:"error"`
}

// await returns a call at its end. It returns the call as it stands when the time is up, the
// server ends or the client has gone; the call goes on.
func (h *handoffs) await(ctx context.Context, id string, wait wait) (handoff.Result, error) {
	if !wait.untilEnd {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait.time)
		defer cancel()
	}
	return h.broker.Await(ctx, id)
}

func (h *handoffs) answerWith(w http.ResponseWriter, r *http.Request, id string, wait wait) error {
	w.Header().Set("Location", "/handoff/"+id)
	result, err := h.await(r.Context(), id, wait)
	switch {
	case err != nil:
		return err
	case !result.Ended && wait.untilEnd:
		return interrupted(id)
	case !result.Ended:
		return h.responder.reply(w, r, http.StatusAccepted, unfinished{id, result.State})
	}
	answer := finished{ID: id, State: result.State, Success: result.Success, Error: result.Error}
	if result.Success {
		answer.Output = result.Output
	}
	if answer.Files, err = h.broker.Deliver(r.Context(), id, result.Files); err != nil {
		return err
	}
	h.responder.log.InfoContext(r.Context(), "handoff answered", "handoff", id, "state", result.State)
	return h.responder.reply(w, r, http.StatusOK, answer)
}

func interrupted(id string) error {
	return fault.New(fault.Unavailable, "the server ends before the call does").
		WithHint("the call goes on; GET /handoff/%s tells how", id)
}

// readRequest reads the body of POST /handoff. One with a session_id comes from a program of
// another orchestrator's, which may send fields that we don't know; else they are refused.
func (h *handoffs) readRequest(
	w http.ResponseWriter, r *http.Request,
) (asked handoff.Request, foreign bool, err error) {
	f, err := readFields(w, r, h.bodyBytes)
	if err != nil {
		return handoff.Request{}, false, httpwire.AsKind(fault.BadRequest, err)
	}
	known := []string{"target", "args", "timeout"}
	if _, foreign = f[sessionField]; foreign {
		h.ignored.add(f, append(known, sessionField))
	} else if err := f.Only(known...); err != nil {
		return handoff.Request{}, false, err
	}
	asked, err = requestOf(f)
	asked.Foreign = foreign
	if err == nil {
		asked.Key, err = httpwire.IdempotencyKey(r)
	}
	return asked, foreign, err
}

// sessionField names the caller in requests of other orchestrators' programs. Here the socket
// says who asks.
const sessionField = "session_id"

func requestOf(f httpwire.Fields) (handoff.Request, error) {
	asked := handoff.Request{Args: f["args"]}
	var timeout string
	err := errors.Join(httpwire.Take(f, "target", &asked.Target), httpwire.Take(f, "timeout", &timeout))
	if err != nil {
		return handoff.Request{}, err
	}
	if asked.Target == "" {
		return handoff.Request{}, fault.New(fault.BadRequest, "the request names no target").
			WithHint(`set "target"; GET /capsules lists them`)
	}
	if string(asked.Args) == "null" {
		asked.Args = nil
	}
	asked.Timeout, err = httpwire.Timeout(timeout)
	return asked, err
}

// readExecution reads the body of POST /execute. It takes fields that it doesn't know:
// clients of other orchestrators send them.
func (h *handoffs) readExecution(w http.ResponseWriter, r *http.Request) (handoff.Request, error) {
	f, err := readFields(w, r, h.bodyBytes)
	if err != nil {
		return handoff.Request{}, err
	}
	asked := handoff.Request{Args: f["input"]}
	if err := httpwire.TakeExecution(f, &asked.Target, &asked.Sources); err != nil {
		return handoff.Request{}, err
	}
	if _, err := contract.Decode(asked.Args, h.bodyBytes); err != nil {
		return handoff.Request{}, httpwire.Within(err, "/input")
	}
	asked.Key, err = httpwire.IdempotencyKey(r)
	return asked, err
}

const maxIgnored = 8 // names that are remembered

// ignored are the names of fields that requests had and nobody took.
type ignored struct {
	mu    sync.Mutex
	names map[string]bool
}

// add remembers the fields that are not known.
func (i *ignored) add(f httpwire.Fields, known []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if slices.Contains(known, name) || len(i.names) == maxIgnored {
			continue
		}
		if i.names == nil {
			i.names = map[string]bool{}
		}
		i.names[name] = true
	}
}

// list returns the names as a message shows them; "" for none.
func (i *ignored) list() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(i.names)) {
		quoted = append(quoted, fault.Quote(name))
	}
	return strings.Join(quoted, ", ")
}
