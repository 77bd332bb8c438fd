package handoff

import (
	"errors"
	"net/http"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// readRequest reads the body of POST /handoff.
func (h *Handler) readRequest(w http.ResponseWriter, r *http.Request) (Request, error) {
	f, err := readFields(w, r, h.bodyBytes())
	if err != nil {
		return Request{}, httpwire.AsKind(fault.BadRequest, err)
	}
	asked := Request{Args: f["args"]}
	var timeout string
	err = errors.Join(f.Only("target", "args", "timeout"), httpwire.Take(f, "target", &asked.Target), httpwire.Take(f, "timeout", &timeout))
	if err != nil {
		return Request{}, err
	}
	if asked.Target == "" {
		return Request{}, fault.New(fault.BadRequest, "the request names no target").WithHint(`set "target"; GET /capsules lists them`)
	}
	if string(asked.Args) == "null" {
		asked.Args = nil
	}
	if asked.Timeout, err = httpwire.Timeout(timeout); err != nil {
		return Request{}, err
	}
	asked.Key, err = httpwire.IdempotencyKey(r)
	return asked, err
}

// readExecution reads the body of POST /execute. It takes fields that it doesn't know:
// clients of other orchestrators send them.
func (h *Handler) readExecution(w http.ResponseWriter, r *http.Request) (Request, error) {
	f, err := readFields(w, r, h.bodyBytes())
	if err != nil {
		return Request{}, err
	}
	if f["capsule"] == nil || f["input"] == nil {
		return Request{}, fault.New(fault.Input, `the body has no "capsule" or no "input"`).
			WithHint(`send {"capsule": "NAME", "input": {…}}`)
	}
	asked := Request{Args: f["input"]}
	err = errors.Join(httpwire.Take(f, "capsule", &asked.Target), httpwire.Take(f, "files", &asked.Sources))
	if err != nil {
		return Request{}, httpwire.AsKind(fault.Input, err)
	}
	if asked.Target == "" {
		return Request{}, fault.New(fault.BadRequest, "the capsule's name is empty").WithHint("GET /capsules lists them")
	}
	asked.Key, err = httpwire.IdempotencyKey(r)
	return asked, err
}

// bodyBytes leaves room for what stands around the arguments.
func (h *Handler) bodyBytes() int64 { return h.broker.limits.ArgsBytes + httpwire.SmallBody }
