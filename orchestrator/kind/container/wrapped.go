package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// wrappedTmpBytes is the least that a wrapped agent has in /tmp.
const wrappedTmpBytes = 256 << 20

// wrappedAgent is the program of a unit of the kind agent: it gets a message as its agent.yaml
// says, and what it leaves is read likewise.
type wrappedAgent struct{}

func (wrappedAgent) noun() string { return "agent" }

// wrappedOf returns the directory of a wrapped agent, or an Input fault of another unit.
func wrappedOf(u *unit.Unit) (*capsule.Capsule, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.Wrapped == nil {
		return nil, fault.New(fault.Input, "%q isn't a wrapped agent", u.Name)
	}
	return c, nil
}

// check refuses a message that can't be an argument, before anything starts.
func (wrappedAgent) check(m *machine, req run.Request, ready run.Input) error {
	c, err := wrappedOf(req.Unit)
	if err != nil {
		return err
	}
	if err := m.converses(req.Unit); err != nil {
		return err
	}
	if err := m.takesProject(req); err != nil {
		return err
	}
	_, err = c.AgentCall(ready.Payload, "", capsule.AgentSession{}, req.Start)
	return err
}

// limits gives an agent a larger /tmp than others have.
func (wrappedAgent) limits(of runtime.Limits) runtime.Limits {
	of.TmpBytes = max(of.TmpBytes, wrappedTmpBytes)
	return of
}

func (wrappedAgent) loadsAhead() bool { return false } // its arguments come with the run

func (wrappedAgent) completeWarmSpec(_ *machine, u *unit.Unit, spec *runtime.Spec) error {
	c, err := wrappedOf(u)
	if err != nil {
		return err
	}
	wrap(spec, c)
	return nil
}

// wrap gives a sandbox what CLI programs expect of a machine.
func wrap(spec *runtime.Spec, c *capsule.Capsule) {
	spec.Stdio, spec.Account = &runtime.Stdio{FetchBytes: capsule.AgentOutputBytes}, true
	spec.Program, spec.Dir = c.Wrapped.Command[:1], c.AgentDir(capsule.AgentStart{})
	spec.Env = append(slices.Clone(spec.Env), wrappedEnv...)
}

// wrappedEnv has programs use no terminal, execute what they unpack, and trust the repository
// that they find: it is a copy that belongs to nobody else.
var wrappedEnv = []string{
	"TERM=dumb", "NO_COLOR=1", "TMPDIR=" + runtime.TempDir,
	"GIT_CONFIG_COUNT=3",
	"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=agent",
	"GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=agent@sandbox.invalid",
}

// prepare gives the program its message, and its command the values of the run.
func (wrappedAgent) prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error {
	c, err := wrappedOf(x.run.Unit)
	if err != nil {
		return err
	}
	session, err := x.session.agent()
	if err != nil {
		return err
	}
	call, err := c.AgentCall(x.run.Input.Payload, x.run.ID, session, x.run.Start)
	if err != nil {
		return err
	}
	if spec.Stdio == nil { // else the sandbox waited with it
		wrap(spec, c)
	}
	stdio := *spec.Stdio
	stdio.Output = call.OutputFile
	if call.Stdin {
		stdio.Stdin = runtime.StdinFile
	}
	spec.Program, spec.Stdio, spec.Dir = call.Argv, &stdio, call.Dir
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], call.Env...)
	if err := x.project.place(ctx, spec, layout, call.Dir); err != nil {
		return err
	}
	return placeMessage(call, layout)
}

// placeMessage makes the directories that the program expects, and writes its message where it
// reads it.
func placeMessage(call capsule.AgentCall, layout runtime.Layout) error {
	if err := makeDirs(layout, call.Dir, path.Dir(path.Join(runtime.Workspace, call.OutputFile))); err != nil {
		return err
	}
	switch {
	case call.Stdin:
		return layout.WriteStdin([]byte(call.Message))
	case call.InputFile != "":
		return layout.Workdir().WriteFile(call.InputFile, []byte(call.Message))
	}
	return nil
}

// makeDirs makes the directory of temporary files, and those of the given ones that are below
// /workspace.
func makeDirs(layout runtime.Layout, dirs ...string) error {
	if err := layout.Workdir().MakeTempDir(); err != nil {
		return err
	}
	for _, dir := range dirs {
		below, inside := strings.CutPrefix(dir, runtime.Workspace+"/")
		if !inside {
			continue
		}
		if err := layout.Workdir().MakeDir(below); err != nil {
			return err
		}
	}
	return nil
}

// adopt says of the sandbox what its end needs.
func (wrappedAgent) adopt(x *execution, spec *runtime.Spec) {
	spec.Stdio = &runtime.Stdio{FetchBytes: capsule.AgentOutputBytes}
	if c, err := wrappedOf(x.run.Unit); err == nil {
		spec.Stdio.Output = c.AgentOutputFile(x.run.ID)
	}
}

func (wrappedAgent) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	over := capsuleProgram{}.wroteTooMuch(limits)
	over.Message = fmt.Sprintf("the agent was stopped when it wrote a file, or to stdout, more than %s",
		megabytes(limits.DiskBytes))
	return over
}

// collect decides what the end of a wrapped agent means that wasn't stopped.
func (wrappedAgent) collect(ctx context.Context, x *execution, end runtime.End) (run.Result, error) {
	c, err := wrappedOf(x.run.Unit)
	if err != nil {
		return run.Result{}, err
	}
	a := x.attempt
	output, err := wrappedOutput{
		capsule: c, file: c.AgentOutputFile(x.run.ID), layout: a.layout, limit: a.limits.ResultBytes,
	}.read()
	if err != nil {
		return run.Result{}, err
	}
	noteWrapped(x.run, output)
	if lost := x.session.keepOwn(output.Session); lost != nil {
		return run.Result{}, lost
	}
	switch {
	case end.ExitCode != 0 || output.Wrong == nil && output.Failed:
		return wrappedFailed(c, end.ExitCode, output), nil
	case output.Wrong != nil:
		return wrongOutput(*output.Wrong), nil
	}
	x.verdict.noteLimits(end)
	payload, err := contract.NewPayload(output.Document)
	if err != nil {
		return wrongOutput(run.Undecodable(err)), nil
	}
	return x.collector.takeOutput(ctx, payload, a.layout, a.limits)
}

// wrappedOutput is what the program of a wrapped agent left, on stdout or in its file.
type wrappedOutput struct {
	capsule *capsule.Capsule
	file    string // below the workspace; "": stdout
	layout  runtime.Layout
	limit   int64 // in bytes, of the result
}

func (o wrappedOutput) read() (capsule.AgentOutput, error) {
	f, wrong, err := o.open()
	if err != nil || wrong != nil {
		return capsule.AgentOutput{Wrong: wrong}, err
	}
	defer func() { _ = f.Close() }() // read only
	output, err := o.capsule.ReadAgentOutput(f, o.limit)
	if err != nil {
		return output, fmt.Errorf("read output: %w", err)
	}
	return output, nil
}

// open opens the output. wrong says of a file why it is none.
func (o wrappedOutput) open() (f *os.File, wrong *fault.Finding, err error) {
	if o.file == "" {
		f, err = o.layout.OpenStdout()
	} else {
		f, err = o.layout.Workdir().OpenFile(o.file)
	}
	var special *safefs.Irregular
	switch {
	case err == nil:
		return f, nil, nil
	case o.file == "":
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, &fault.Finding{
			Message: "the file of agent.output_file was not written",
			Hint:    "it is " + path.Join(runtime.Workspace, o.file) + " in the sandbox",
		}, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &fault.Finding{
			Message: "the file of agent.output_file can't be read: its permissions are closed",
			Hint:    "have it written with mode 0644",
		}, nil
	case errors.As(err, &special):
		return nil, &fault.Finding{
			Message: "the file of agent.output_file " + special.Error(),
			Hint:    "links and special files are never followed",
		}, nil
	}
	return nil, nil, fmt.Errorf("open output: %w", err)
}

// noteWrapped records what the program tells of itself.
func noteWrapped(r *run.Run, output capsule.AgentOutput) {
	record := &r.Record
	record.AgentSession, record.AgentUsage, record.CostUSD = output.Session, output.Usage, output.CostUSD
	if output.Skipped > 0 {
		r.Warn("%d lines of the agent's output aren't JSON objects, and were left out", output.Skipped)
	}
}

// wrappedFailed is the result of an agent that failed by itself.
func wrappedFailed(c *capsule.Capsule, exit int, output capsule.AgentOutput) run.Result {
	failure := &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.CapsuleError),
		Message: fmt.Sprintf("the agent failed with exit code %d", exit),
		Hint:    "its log, which is its stderr, says more",
	}
	if category, ok := c.Wrapped.ExitCodes[exit]; ok {
		failure.Category = api.Category(category)
	}
	if exit == 0 {
		failure.Message = "the agent says that it failed"
	}
	if output.Reason != "" {
		failure.Message, failure.Hint = run.Bounded(output.Reason, run.MaxMessage), ""
	}
	return run.Failed(api.CapsuleError, max(exit, exitContract), failure)
}

// wrongOutput is the result of an agent that exited with 0, and whose output isn't what its
// agent.yaml says.
func wrongOutput(wrong fault.Finding) run.Result {
	return run.Failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation),
		Message: "the agent exited with 0, but " + wrong.Message, Hint: wrong.Hint,
	})
}
