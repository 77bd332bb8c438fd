package handoff

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
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
		return ask{}, as(fault.BadRequest, err)
	}
	asked := ask{args: f["args"]}
	var timeout string
	err = errors.Join(f.only("target", "args", "timeout"), take(f, "target", &asked.target), take(f, "timeout", &timeout))
	if err != nil {
		return ask{}, err
	}
	if asked.target == "" {
		return ask{}, fault.New(fault.BadRequest, "the request names no target").WithHint(`set "target"; GET /capsules lists them`)
	}
	if len(asked.args) == 0 || string(asked.args) == "null" {
		asked.args = json.RawMessage("{}")
	}
	if asked.timeout, err = timeoutOf(timeout); err != nil {
		return ask{}, err
	}
	asked.key, err = idempotencyKey(r)
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
	err = errors.Join(take(f, "capsule", &asked.target), take(f, "files", &asked.sources))
	if err != nil {
		return ask{}, as(fault.Input, err)
	}
	if asked.target == "" {
		return ask{}, fault.New(fault.BadRequest, "the capsule's name is empty").WithHint("GET /capsules lists them")
	}
	asked.key, err = idempotencyKey(r)
	return asked, err
}

// bodyBytes leaves room for what stands around the arguments.
func (h *Handler) bodyBytes() int64 { return h.limits.ArgsBytes + smallBody }

func timeoutOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fault.New(fault.BadRequest, "the timeout is not valid").WithHint("write a duration such as 30s or 5m")
	}
	return d, nil
}

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

// sourceOf is where in outgoing a file lies that the arguments call by this text, which
// stands for this clean name.
func (a ask) sourceOf(text, name string) (string, error) {
	for _, known := range []string{text, name} {
		if source, ok := a.sources[known]; ok {
			return contract.CleanName(source, contract.StageOutgoing)
		}
	}
	return name, nil
}

const maxKeyBytes = 255

// idempotencyKey returns the request's key; "" for none.
func idempotencyKey(r *http.Request) (string, error) {
	const header = "Idempotency-Key"
	values := r.Header.Values(header)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	visible := !slices.ContainsFunc([]byte(key), func(b byte) bool { return b <= ' ' || b > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKeyBytes || !visible {
		return "", fault.New(fault.BadRequest, "the header %s is not valid", header).
			WithHint("send one, of 1 to %d visible ASCII characters, such as a UUID", maxKeyBytes)
	}
	return key, nil
}
