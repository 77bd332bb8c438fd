package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// mcpServer is the program of an MCP server: it talks with a client on stdin and stdout. The
// client's end is the relay.Session in Request.Extra. The run is over with the session.
type mcpServer struct{ capsuleProgram }

func (mcpServer) noun() string { return "server" }

// check refuses a run that nobody talks with.
func (mcpServer) check(c *Containers, req run.Request, _ run.Input) error {
	name := req.Unit.Name
	if sessionOf(req.Extra) == nil {
		return fault.New(fault.Input, "%q is an MCP server, which is talked with and not run", name).
			WithHint("use /mcp/%s with an MCP client, `aod mcp run %s`, or `aod mcp call %s TOOL`", name, name, name)
	}
	return c.canTalk()
}

// canTalk refuses sessions with an engine that this process can't keep a server's end with.
func (c *Containers) canTalk() error {
	if runtime.IsRemote(c.engine) {
		return fault.New(fault.Unsupported,
			"an MCP server can't be run on an engine elsewhere: it has to end with its session, and nobody there "+
				"would notice").
			WithHint("use an engine on this machine")
	}
	return nil
}

// SessionRules implements run.Talker.
func (c *Containers) SessionRules(u *unit.Unit) (relay.Options, error) { return SessionRules(u) }

// SessionRules returns the rules of sessions with a unit; run.NoSession of one that is run.
func SessionRules(u *unit.Unit) (relay.Options, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.MCP == nil {
		return relay.Options{}, run.NoSession(u)
	}
	return relay.Options{Tools: c.MCP.Tools, Timeout: c.MCP.Timeout, Idle: c.MCP.Idle}, nil
}

func sessionOf(extra any) *relay.Session {
	s, _ := extra.(*relay.Session)
	return s
}

func (mcpServer) loadsAhead() bool { return false }

// prepare connects the session's ends with the container's streams.
func (mcpServer) prepare(_ context.Context, x *execution, spec *runtime.Spec, _ runtime.Layout) error {
	x.talk = newTalk(sessionOf(x.Extra))
	talkInstead(spec, x.Unit, x.talk)
	return nil
}

// talkInstead makes the spec that of a server whose streams are those of a talk.
func talkInstead(spec *runtime.Spec, u *unit.Unit, t *talk) {
	spec.Console = &runtime.Console{
		Command: slices.Concat(spec.Image.Entrypoint, spec.Image.Cmd), Stdin: t.stdin, Stdout: t.stdout,
	}
	spec.Durable, spec.Leash = false, true
	spec.Env = slices.Clone(spec.Env)
	if c, ok := u.Definition.(*capsule.Capsule); ok && c.MCP != nil {
		for _, name := range slices.Sorted(maps.Keys(c.MCP.Env)) {
			spec.Env = append(spec.Env, name+"="+c.MCP.Env[name])
		}
	}
}

// collect says how the session went. The program has not been stopped, or the session was over.
func (mcpServer) collect(_ context.Context, x *execution, end runtime.End) (run.Result, error) {
	s := x.talk.session
	_, all, failed := s.Calls()
	x.noteLimits(end)
	if !s.EndedWell() {
		return serverFailed(end.ExitCode, s.Err()), nil
	}
	success := 0
	output := fmt.Appendf(nil, `{"calls":%d,"failed":%d}`, all, failed)
	return run.Result{State: api.Completed, Outcome: api.Success, ExitCode: &success, Output: output}, nil
}

// noteToolCalls records the calls of a session.
func (x *execution) noteToolCalls() {
	if x.talk == nil {
		return
	}
	calls, all, _ := x.talk.session.Calls()
	x.Record.ToolCalls = calls
	if all > len(calls) {
		x.Warn("the session had %d calls; the record lists the first %d", all, len(calls))
	}
}

// serverFailed is the result of a session that its server ended.
func serverFailed(exit int, cause error) run.Result {
	failure := &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.CapsuleError),
		Message: fmt.Sprintf("the server ended (exit code %d) while its client was there", exit),
		Hint:    "its log, which is its stderr, says more",
	}
	if cause != nil && !errors.Is(cause, relay.ErrServerEnded) {
		public := fault.Public(cause)
		failure.Message, failure.Hint = public.Msg, public.Hint
	}
	return run.Failed(api.CapsuleError, max(exit, exitContract), failure)
}

// cutOff is the result of a session whose server can't be talked with any more.
func cutOff(why string) run.Result {
	return run.Result{State: api.Failed, Outcome: api.SystemError, Failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: "cut_off",
		Message: why, Hint: "begin a new session",
	}}
}
