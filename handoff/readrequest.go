package handoff

import (
	"errors"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// readRequest reads the body of POST /handoff. One with a session_id comes from a program of
// another orchestrator's, which may send fields that we don't know; else they are refused.
func (h *Handler) readRequest(w http.ResponseWriter, r *http.Request) (asked Request, foreign bool, err error) {
	f, err := readFields(w, r, h.bodyBytes())
	if err != nil {
		return Request{}, false, httpwire.AsKind(fault.BadRequest, err)
	}
	known := []string{"target", "args", "timeout"}
	if _, foreign = f[sessionField]; foreign {
		h.ignored.add(f, append(known, sessionField))
	} else if err := f.Only(known...); err != nil {
		return Request{}, false, err
	}
	asked, err = requestOf(f)
	if err == nil {
		asked.Key, err = httpwire.IdempotencyKey(r)
	}
	return asked, foreign, err
}

// sessionField names the caller in requests of other orchestrators' programs. Here the socket
// says who asks.
const sessionField = "session_id"

func requestOf(f httpwire.Fields) (Request, error) {
	asked := Request{Args: f["args"]}
	var timeout string
	err := errors.Join(httpwire.Take(f, "target", &asked.Target), httpwire.Take(f, "timeout", &timeout))
	if err != nil {
		return Request{}, err
	}
	if asked.Target == "" {
		return Request{}, fault.New(fault.BadRequest, "the request names no target").
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
func (h *Handler) readExecution(w http.ResponseWriter, r *http.Request) (Request, error) {
	f, err := readFields(w, r, h.bodyBytes())
	if err != nil {
		return Request{}, err
	}
	asked := Request{Args: f["input"]}
	if err := httpwire.TakeExecution(f, &asked.Target, &asked.Sources); err != nil {
		return Request{}, err
	}
	if _, err := contract.Decode(asked.Args, h.bodyBytes()); err != nil {
		return Request{}, httpwire.Within(err, "/input")
	}
	asked.Key, err = httpwire.IdempotencyKey(r)
	return asked, err
}

// bodyBytes leaves room for what stands around the arguments.
func (h *Handler) bodyBytes() int64 { return h.broker.limits.ArgsBytes + httpwire.SmallBody }
