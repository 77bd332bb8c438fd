package container

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// wrappedTmpBytes is the least that a wrapped agent has in /tmp.
const wrappedTmpBytes = 256 << 20

// wrappedAgent is the program of a unit of the kind agent: it gets a message as its agent.yaml
// says, and what it leaves is read likewise.
type wrappedAgent struct{ capsuleProgram }

func (wrappedAgent) noun() string { return "agent" }

// wrappedOf returns the directory of a wrapped agent, or an Input fault of another unit.
func wrappedOf(u *unit.Unit) (*capsule.Capsule, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.Wrapped == nil {
		return nil, fault.New(fault.Input, "%q is no wrapped agent", u.Name)
	}
	return c, nil
}

// check refuses a message that can't be an argument, before anything starts.
func (wrappedAgent) check(containers *Containers, req run.Request, ready run.Input) error {
	c, err := wrappedOf(req.Unit)
	if err != nil {
		return err
	}
	if _, _, err := containers.Conversation(req.Unit); err != nil {
		return err
	}
	if err := containers.takesProject(req); err != nil {
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

func (wrappedAgent) waiting(_ *Containers, u *unit.Unit, spec *runtime.Spec) error {
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
	c, err := wrappedOf(x.Unit)
	if err != nil {
		return err
	}
	session, err := x.agentSession()
	if err != nil {
		return err
	}
	call, err := c.AgentCall(x.Input.Payload, x.ID, session, x.Start)
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
	if err := x.placeProject(ctx, spec, layout, call.Dir); err != nil {
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
		return layout.WriteFile(call.InputFile, []byte(call.Message))
	}
	return nil
}

// makeDirs makes the directory of temporary files, and those of the given ones that are below
// /workspace.
func makeDirs(layout runtime.Layout, dirs ...string) error {
	if err := layout.MakeTempDir(); err != nil {
		return err
	}
	for _, dir := range dirs {
		below, inside := strings.CutPrefix(dir, runtime.Workspace+"/")
		if !inside {
			continue
		}
		if err := layout.MakeDir(below); err != nil {
			return err
		}
	}
	return nil
}

// adopt says of the sandbox what its end needs.
func (wrappedAgent) adopt(x *execution, spec *runtime.Spec) {
	spec.Stdio = &runtime.Stdio{FetchBytes: capsule.AgentOutputBytes}
	if c, err := wrappedOf(x.Unit); err == nil {
		spec.Stdio.Output = c.AgentOutputFile(x.ID)
	}
}

func (w wrappedAgent) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	over := w.capsuleProgram.wroteTooMuch(limits)
	over.Message = fmt.Sprintf("the agent was stopped when it wrote a file, or to stdout, more than %s",
		megabytes(limits.DiskBytes))
	return over
}
