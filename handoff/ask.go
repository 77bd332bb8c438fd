package handoff

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// ask is what a capsule asks for.
type ask struct {
	target  string
	args    json.RawMessage
	sources map[string]string // where in outgoing a file lies that args know by another name
	timeout time.Duration     // 0: the unit's
	key     string
}

// readAsk reads the body of POST /handoff.
func (h *Handler) readAsk(w http.ResponseWriter, r *http.Request) (ask, error) {
	f, err := readFields(w, r, h.bodyBytes())
	if err != nil {
		return ask{}, httpwire.AsKind(fault.BadRequest, err)
	}
	asked := ask{args: f["args"]}
	var timeout string
	err = errors.Join(f.Only("target", "args", "timeout"), httpwire.Take(f, "target", &asked.target), httpwire.Take(f, "timeout", &timeout))
	if err != nil {
		return ask{}, err
	}
	if asked.target == "" {
		return ask{}, fault.New(fault.BadRequest, "the request names no target").WithHint(`set "target"; GET /capsules lists them`)
	}
	if len(asked.args) == 0 || string(asked.args) == "null" {
		asked.args = json.RawMessage("{}")
	}
	if asked.timeout, err = httpwire.Timeout(timeout); err != nil {
		return ask{}, err
	}
	asked.key, err = httpwire.IdempotencyKey(r)
	return asked, err
}

// readExecution reads the body of POST /execute. It takes fields that it doesn't know:
// clients of other orchestrators send them.
func (h *Handler) readExecution(w http.ResponseWriter, r *http.Request) (ask, error) {
	f, err := readFields(w, r, h.bodyBytes())
	if err != nil {
		return ask{}, err
	}
	if f["capsule"] == nil || f["input"] == nil {
		return ask{}, fault.New(fault.Input, `the body has no "capsule" or no "input"`).
			WithHint(`send {"capsule": "NAME", "input": {…}}`)
	}
	asked := ask{args: f["input"]}
	err = errors.Join(httpwire.Take(f, "capsule", &asked.target), httpwire.Take(f, "files", &asked.sources))
	if err != nil {
		return ask{}, httpwire.AsKind(fault.Input, err)
	}
	if asked.target == "" {
		return ask{}, fault.New(fault.BadRequest, "the capsule's name is empty").WithHint("GET /capsules lists them")
	}
	asked.key, err = httpwire.IdempotencyKey(r)
	return asked, err
}

// bodyBytes leaves room for what stands around the arguments.
func (h *Handler) bodyBytes() int64 { return h.limits.ArgsBytes + httpwire.SmallBody }

// nameFiles sets the file fields that the arguments leave out and `files` gives.
func (a ask) nameFiles(input *contract.Schema, args contract.Payload) (contract.Payload, error) {
	var err error
	for _, field := range input.FileFields() {
		source, given := a.sources[field]
		if _, set := args.Get(field); !given || set || strings.Contains(field, ".") {
			continue
		}
		if args, err = args.With(field, source); err != nil {
			return args, err
		}
	}
	return args, nil
}

// sourceOf is where in outgoing the file lies that the arguments name.
func (a ask) sourceOf(ref contract.FileRef) (string, error) {
	if ref.Err != nil {
		return "", ref.Err
	}
	for _, known := range []string{ref.Text, ref.Name} {
		if source, ok := a.sources[known]; ok {
			return contract.CleanName(source, contract.StageOutgoing)
		}
	}
	return ref.Name, nil
}
