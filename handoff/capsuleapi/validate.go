package capsuleapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	// judgeTime is how long a value is judged, and waits for its turn.
	judgeTime = 10 * time.Second
	// maxJudged is the schema that a program may send. The contract of a unit may have as much.
	maxJudged = 256 << 10
)

// judges are how many schemas of programs are compiled at once, of all runs: the tree of one may have
// some fifty megabytes. They wait in the order in which they came, and a run has one of them.
var judges = semaphore.NewWeighted(2)

// judging says whether a value keeps a schema, both of which a run sends.
type judging struct {
	responder  responder
	pace       pace
	turn       *semaphore.Weighted // of the run
	valueBytes int64
}

// judgement is the answer to POST /validate.
type judgement struct {
	Valid    bool            `json:"valid"`
	Findings []fault.Finding `json:"findings"`
}

func (j judging) post(w http.ResponseWriter, r *http.Request) error {
	f, err := readFields(w, r, maxJudged+j.valueBytes+httpwire.SmallBody)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	var side string
	if err := errors.Join(f.Only("schema", "side", "value"), httpwire.Take(f, "side", &side)); err != nil {
		return err
	}
	if f["schema"] == nil || f["value"] == nil {
		return fault.New(fault.BadRequest, "the body has no schema, or no value").
			WithHint(`send {"schema": {...}, "value": {...}}`)
	}
	value, err := contract.Decode(f["value"], j.valueBytes)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	found, err := j.judge(r.Context(), f["schema"], side, value)
	if err != nil {
		return err
	}
	return j.responder.reply(w, r, http.StatusOK, judgement{len(found) == 0, append([]fault.Finding{}, found...)})
}

// judge compiles the schema and holds the value against it, when it is the run's turn.
func (j judging) judge(
	ctx context.Context, schema json.RawMessage, side string, value contract.Payload,
) ([]fault.Finding, error) {
	late := fault.New(fault.Unavailable, "the value could not be judged in time").
		WithHint("try again, with a simpler schema or less of a value")
	ctx, cancel := context.WithTimeoutCause(ctx, judgeTime, late)
	defer cancel()
	for _, turn := range []*semaphore.Weighted{j.turn, judges} {
		if turn.Acquire(ctx, 1) != nil {
			return nil, context.Cause(ctx)
		}
		defer turn.Release(1)
	}
	began := time.Now()
	defer func() { j.pace.took(time.Since(began)) }()
	compiled, err := compiledSide(schema, side)
	if err != nil {
		return nil, err
	}
	return compiled.ValidateContext(ctx, value)
}

// compiledSide compiles a schema, or one side of a whole contract.
func compiledSide(raw json.RawMessage, side string) (*contract.Schema, error) {
	var schema *contract.Schema
	var findings []fault.Finding
	switch side {
	case "":
		schema, findings = contract.Compile(raw)
	case "input", "output":
		var whole *contract.Contract
		if whole, findings = contract.Parse(raw); whole != nil {
			schema = map[string]*contract.Schema{"input": whole.Input, "output": whole.Output}[side]
		}
	default:
		return nil, fault.New(fault.BadRequest, "there is no side %s of a contract", fault.Quote(side)).
			WithHint(`side is "input" or "output" of a schema.json, or left out for a schema of its own`)
	}
	if schema == nil {
		return nil, fault.New(fault.Input, "the schema can't be used").WithFindings(fault.Errors(findings))
	}
	return schema, nil
}
