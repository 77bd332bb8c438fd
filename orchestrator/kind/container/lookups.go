package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// lookups remember whether the programs of wrapped agents are in their images: the init of a
// sandbox looked each up, before a run or without one. What they know is kept beside the model
// cards. They are safe for concurrent use.
type lookups struct {
	machine *machine
	kept    sync.Map // of api.AgentProgram that this process wrote, by file
}

// of returns what is known of a unit's program; nil: nobody has looked yet, or it isn't a wrapped
// agent.
func (l *lookups) of(u *unit.Unit, image string) *api.AgentProgram {
	var found api.AgentProgram
	if raw, err := os.ReadFile(l.file(u, image)); err != nil || json.Unmarshal(raw, &found) != nil {
		return nil
	}
	return &found
}

// note remembers the end of a sandbox, where that looked the program up. A PATH that a caller gave
// is one run's alone.
func (l *lookups) note(u *unit.Unit, image string, start capsule.AgentStart, end runtime.End) {
	file := l.file(u, image)
	if _, own := start.Env["PATH"]; own || file == "" || !end.Reported {
		return
	}
	found := api.AgentProgram{Found: true}
	if why := end.Report.StartError; why != "" {
		if !slices.ContainsFunc(lacks, func(words string) bool { return strings.Contains(why, words) }) {
			return
		}
		failure := notInImage(image, why)
		found = api.AgentProgram{Problem: failure.Message, Hint: failure.Hint}
	}
	if before, ok := l.kept.Swap(file, found); ok && before == found {
		return
	}
	raw, err := json.Marshal(found)
	if err == nil {
		err = remember(file, raw)
	}
	if err != nil {
		l.machine.logger.Warn("lookup of a program not kept", "unit", u.Name, fault.LogAttr(err))
	}
}

// lacks are the words of an init for what is wrong with an image. The rest, such as too long an
// argument, is one run's.
var lacks = []string{"not found", "no such file or directory", "permission denied", "exec format error"}

// file is where a lookup is kept: by the image, the name that is looked up and what is searched.
// It is "" for a unit that isn't a wrapped agent, and for one whose image isn't known.
func (l *lookups) file(u *unit.Unit, image string) string {
	c, err := wrappedOf(u)
	if err != nil || image == "" {
		return ""
	}
	sum := sha256.New()
	for _, part := range []string{image, c.Wrapped.Command[0], c.Wrapped.Env["PATH"], u.Policy.Env["PATH"]} {
		_, _ = fmt.Fprintf(sum, "%d %s", len(part), part) // a hash takes everything
	}
	return filepath.Join(l.machine.home.Cards, hex.EncodeToString(sum.Sum(nil))+".program.json")
}

// lookUp has the init of a sandbox look up the program of a wrapped agent, and starts nothing.
func (t *trials) lookUp(ctx context.Context, u *unit.Unit, c *capsule.Capsule, observe func(run.Event)) (
	image string, end runtime.End, err error,
) {
	err = t.beside(ctx, u, observe, func(r *run.Run, spec runtime.Spec, dir string) error {
		image = r.Record.Image.Ref
		wrap(&spec, c)
		spec.Env = append(spec.Env, c.AgentEnv(agent.Values{Dir: spec.Dir}, capsule.AgentStart{})...)
		spec.Mode, spec.Stdio = runtime.ModeProbe, nil
		spec.Purpose, spec.Network = "find", "none"
		layout, err := t.starter.newLayout(filepath.Join(dir, "find"), spec.Image, "")
		if err != nil {
			return err
		}
		log := runtime.NewLog(spec.Limits.LogBytes, func(runtime.LogLine) {})
		end, err = t.starter.startToEnd(ctx, spec, layout.At(t.machine.engine, spec), log, spec.Limits.Timeout)
		return err
	})
	return image, end, err
}

// findProgram looks up the program of a wrapped agent. observe gets the steps of the image's build,
// and may be nil. The error is a Capsule fault where the program isn't there, or can't be executed.
func (t *trials) findProgram(ctx context.Context, u *unit.Unit, observe func(run.Event)) error {
	c, err := wrappedOf(u)
	if err != nil {
		return err
	}
	image, end, err := t.lookUp(ctx, u, c, observe)
	if err != nil {
		return err
	}
	t.lookups.note(u, image, capsule.AgentStart{}, end)
	if end.ExitCode == 0 {
		return nil
	}
	failure := notInImage(image, end.Report.StartError)
	return fault.New(fault.Capsule, "%s", failure.Message).WithHint("%s", failure.Hint)
}

// findAhead looks up the program of a wrapped agent whose image was built for no run. Its run tells
// what this can't.
func (t *trials) findAhead(ctx context.Context, u *unit.Unit) {
	if u.Kind != unit.Agent {
		return
	}
	if err := t.findProgram(ctx, u, nil); err != nil && !fault.Is(err, fault.Capsule) && ctx.Err() == nil {
		t.machine.logger.Warn("program of an agent not looked up", "unit", u.Name, fault.LogAttr(err))
	}
}

// notInImage says that the program of a wrapped agent could not be started, by the init's reason.
func notInImage(image, why string) *api.RunError {
	failure := &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.StartFailed),
		Message: fmt.Sprintf("the agent's command can't be started in its image %s: %s", image, why),
		Hint:    "see agent.command in agent.yaml, and what the Dockerfile makes of it; `aod agent check` looks it up",
	}
	if strings.Contains(why, "not found") {
		failure.Message = fmt.Sprintf("the agent's command is not in its image %s: %s", image, why)
		failure.Hint = "install it in the Dockerfile, or name it in agent.command as the image has it: a path, or a " +
			"name in the PATH; `aod agent check` looks it up"
	}
	if noProgram.in(why) {
		failure.Hint = noProgram.hint
	}
	return failure
}
