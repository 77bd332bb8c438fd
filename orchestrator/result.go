package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	resultPath = "/io/output.json"
	// maxMessage bounds what a capsule may say of its own failure.
	maxMessage = 4 << 10
	maxType    = 200
)

// takeResult reads, validates and delivers what a program left that ended well.
func (r *Run) takeResult(layout runtime.Layout, limits runtime.Limits) (conclusion, error) {
	raw, finding, err := layout.ReadResult(limits.ResultBytes)
	if err != nil {
		return conclusion{}, err
	}
	if finding != nil {
		return violated(*finding), nil
	}
	output, err := contract.Decode(raw, limits.ResultBytes)
	if err != nil {
		return violated(undecodable(err)), nil
	}
	return r.takeOutput(output, layout, limits)
}

func (r *Run) takeOutput(output contract.Payload, layout runtime.Layout, limits runtime.Limits) (conclusion, error) {
	listing, err := layout.Collect(limits)
	var over *runtime.LimitError
	if errors.As(err, &over) {
		return exceeded(0, over), nil
	}
	if err != nil {
		return conclusion{}, err
	}
	findings, err := r.checkOutput(output, layout)
	if err != nil {
		return conclusion{}, err
	}
	if len(findings) > 0 {
		return violated(findings...), nil
	}
	return r.deliver(output, listing, layout)
}

func (r *Run) checkOutput(output contract.Payload, layout runtime.Layout) ([]fault.Finding, error) {
	root, err := layout.OutputRoot()
	if err != nil {
		return nil, fmt.Errorf("check output: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	schema := r.req.Capsule.Contract.Output
	findings := schema.Validate(output)
	return append(findings, schema.CheckFiles(output, contract.StageOutput, root)...), nil
}

// deliver moves the files out: the attempt ended well.
func (r *Run) deliver(output contract.Payload, listing runtime.Listing, layout runtime.Layout) (conclusion, error) {
	delivered, err := r.moveOut(listing.Files, layout)
	if err != nil {
		r.req.Keep = true // the work is done: nothing of it shall be lost
		return conclusion{}, err
	}
	if len(listing.Skipped) > 0 {
		r.warn("left behind in /io/output: %s", strings.Join(listing.Skipped, ", ")+more(listing.Extra))
	}
	success := 0
	return conclusion{
		state: api.Completed, outcome: api.Success, exit: &success,
		output: output.JSON(), files: r.named(delivered, output),
	}, nil
}

// moveOut puts the files where their user wants them, or where a Service keeps them.
func (r *Run) moveOut(found []runtime.Found, layout runtime.Layout) ([]runtime.File, error) {
	if r.published != "" {
		return layout.Publish(found, r.published)
	}
	return layout.Deliver(found, r.req.OutDir)
}

// named says of each file which field of the output names it.
func (r *Run) named(delivered []runtime.File, output contract.Payload) []api.File {
	pointers := map[string]string{}
	for _, ref := range r.req.Capsule.Contract.Output.FileRefs(output) {
		pointers[ref.Name] = ref.Pointer
	}
	files := make([]api.File, 0, len(delivered))
	for _, f := range delivered {
		file := api.File{Name: f.Name, SizeBytes: f.SizeBytes, SHA256: f.SHA256}
		if r.published == "" {
			file.Path = f.Path
		}
		if pointer, ok := pointers[f.Name]; ok {
			file.Pointer = &pointer
		}
		files = append(files, file)
	}
	return files
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// violated concludes a run that exited 0 without a valid result.
func violated(findings ...fault.Finding) conclusion {
	for i := range findings {
		if findings[i].File == "" {
			findings[i].File = resultPath
		}
	}
	return failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation),
		Message:  "the capsule exited with 0, but its result breaks the contract",
		Hint:     "see `output` in the capsule's schema.json",
		Findings: findings,
	})
}

// undecodable says what was wrong with bytes that are no JSON object.
func undecodable(err error) fault.Finding {
	public := fault.Public(err)
	message := strings.TrimPrefix(public.Msg, "the payload ") // the place says what it is
	return fault.Finding{File: resultPath, Message: message, Hint: public.Hint}
}

// takeError concludes a run whose program failed by itself. It may have left word in
// /io/output.json: {"error": {"type": …, "message": …}} or {"error": "…"}.
func takeError(end runtime.End, layout runtime.Layout, limits runtime.Limits) (conclusion, error) {
	failure := &api.RunError{
		Category: api.CategoryAgent,
		Message:  fmt.Sprintf("the capsule failed with exit code %d", end.ExitCode),
		Hint:     "its log says more",
	}
	if end.EngineError != "" {
		failure.Message += ": " + bounded(end.EngineError, maxMessage)
	}
	raw, _, err := layout.ReadResult(limits.ResultBytes)
	if err != nil {
		return conclusion{}, err
	}
	if kind, message := toldError(raw, limits.ResultBytes); message != "" {
		failure.Type, failure.Message, failure.Hint = kind, message, ""
	}
	outcome := api.CapsuleError
	if failure.Type == contractError && end.ExitCode == exitContract {
		outcome = api.ContractViolation
	}
	failure.Kind = string(outcome)
	return failed(outcome, end.ExitCode, failure), nil
}

// contractError is what a bridge calls a result that it refused itself, so that the
// outcome is the same whoever was the first to see it.
const contractError = "ContractError"

// toldError reads what a failed capsule says of itself; nothing of it is believed
// beyond being shown.
func toldError(raw []byte, limit int64) (kind, message string) {
	payload, err := contract.Decode(raw, limit)
	if err != nil {
		return "", ""
	}
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	var parts struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(payload.JSON(), &told) != nil {
		return "", ""
	}
	if json.Unmarshal(told.Error, &parts.Message) == nil {
		return "", bounded(parts.Message, maxMessage)
	}
	if json.Unmarshal(told.Error, &parts) != nil {
		return "", ""
	}
	return bounded(parts.Type, maxType), bounded(parts.Message, maxMessage)
}

func bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
