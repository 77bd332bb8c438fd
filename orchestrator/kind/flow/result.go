package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const permanent = string(api.CategoryPermanent)

// result decides what the end of a walk means.
func (x *execution) result(ctx context.Context, state *files, ended flow.Ended) (run.Result, error) {
	if ended.Failure != nil {
		return stepFailed(*ended.Failure), nil
	}
	names := &flow.Names{Whole: true}
	output, err := names.Plain(ended.Output)
	if err != nil {
		return contractViolation(fault.Finding{Message: fault.Public(err).Msg}), nil
	}
	payload, err := contract.NewPayload(output)
	if err != nil {
		return contractViolation(fault.Finding{Message: fault.Public(err).Msg, Hint: fault.Public(err).Hint}), nil
	}
	findings, err := x.Unit.Contract.Output.ValidateContext(ctx, payload)
	if err != nil {
		return x.broken(ctx, err)
	}
	refs := x.Unit.Contract.Output.FileRefs(payload)
	if findings = append(findings, texts(refs, names)...); len(findings) > 0 {
		return contractViolation(findings...), nil
	}
	if over := x.tooMuch(names.Files()); over != nil {
		return *over, nil
	}
	given, err := x.deliver(state, names, payload)
	if err != nil {
		return run.Result{}, err
	}
	return run.Result{State: api.Completed, Outcome: api.Success, Output: payload.JSON(), Files: given}, nil
}

// stepFailed is the result of a walk that met a failure from which no edge leads on.
func stepFailed(f flow.Failure) run.Result {
	message := f.Message
	if f.Node != "" {
		message = fmt.Sprintf("the step %s failed: %s", f.Node, f.Message)
	}
	return run.Result{State: api.Failed, Outcome: api.StepFailed, Failure: &api.RunError{
		Category: cmp.Or(api.Category(f.Category), api.CategoryPermanent), Kind: f.Kind, Type: f.Type, Step: f.Node,
		Message: message, Hint: f.Hint, Findings: f.Findings,
	}}
}

// contractViolation is the result of a walk that ended well with a wrong output.
func contractViolation(findings ...fault.Finding) run.Result {
	return run.Result{State: api.Failed, Outcome: api.ContractViolation, Failure: &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation),
		Message: "the flow's output breaks its contract", Hint: "see `output` in its schema.json and in " +
			flow.FileName,
		Findings: findings,
	}}
}

// texts finds file references of the output that are texts.
func texts(refs []contract.FileRef, names *flow.Names) (findings []fault.Finding) {
	for _, ref := range refs {
		if ref.Err != nil || !names.Has(ref.Name) {
			findings = append(findings, fault.Finding{
				Pointer: ref.Pointer, Message: "it is a text, and the contract wants a file",
				Hint: "give it a file of the state, such as ${{ state.report }} that was set from an output",
			})
		}
	}
	return findings
}

// tooMuch is the result of a walk whose files are over the limits of the run, or nil.
func (x *execution) tooMuch(given []flow.File) *run.Result {
	var bytes int64
	for _, f := range given {
		bytes += f.SizeBytes
	}
	message := ""
	switch {
	case bytes > x.Limits.OutputBytes && x.Limits.OutputBytes > 0:
		message = fmt.Sprintf("the files of the output have %s, and the limit is %s", quantity.SizeText(bytes),
			quantity.SizeText(x.Limits.OutputBytes))
	case len(given) > x.Limits.OutputFiles && x.Limits.OutputFiles > 0:
		message = fmt.Sprintf("the output has %d files, and the limit is %d", len(given), x.Limits.OutputFiles)
	default:
		return nil
	}
	return &run.Result{State: api.Failed, Outcome: api.LimitExceeded, Failure: &api.RunError{
		Category: api.CategoryAgent, Kind: "output_limit", Message: message,
		Hint: "raise limits.output in agent.yaml if it needs that much",
	}}
}

// deliver puts the files of the output where the run's files belong.
func (x *execution) deliver(state *files, names *flow.Names, output contract.Payload) ([]api.File, error) {
	dir := cmp.Or(x.OutDir, x.OutputDir())
	var given []runtime.File
	for _, f := range names.Files() {
		name := names.Of(f)
		put := state.copyOut
		if x.OutDir == "" {
			put = state.linkOut
		}
		if err := put(f, dir, name); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the output file %q can't be written", name).
				WithHint("is the disk full, or something in the way?")
		}
		given = append(given, runtime.File{
			Name: name, Path: filepath.Join(dir, filepath.FromSlash(name)),
			SizeBytes: f.SizeBytes, SHA256: f.SHA256,
		})
	}
	return x.Delivered(given, output), nil
}

// linkOut links a file below a directory that is ours alone. An earlier process may have done
// so before it died.
func (s *files) linkOut(f flow.File, dir, name string) error {
	from, err := s.path(f)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err = os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return s.copyOut(f, dir, name)
}

// copyOut copies a file below a directory of the user's, in place of one of the same name. No
// link in the directory leads out of it.
func (s *files) copyOut(f flow.File, dir, name string) (err error) {
	in, err := s.openOne(f)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := safefs.IgnoreMissing(root.Remove(name)); err != nil {
		return err
	}
	_, err = safefs.Copy(root, name, in, 0o644)
	return err
}
