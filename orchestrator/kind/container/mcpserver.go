package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// mcpServer is the program of an MCP server: it talks with a client on stdin and stdout. The
// client's end is the Talk in Request.Extra. The run is over with the session.
type mcpServer struct{}

// Talk is a client's session as the program of an MCP server has it: a relay.Session, or what stands for one that is at
// another machine.
type Talk interface {
	// Talk connects the session with a program until stdout ends, and the session is over. What isn't a message goes to
	// noise.
	Talk(stdin io.WriteCloser, stdout io.Reader, noise func(line []byte))
	// End ends the session; the first cause counts. Done is closed when it is over, Err says why, and EndedWell whether
	// that is because nobody wanted more of it.
	End(cause error)
	Done() <-chan struct{}
	Err() error
	EndedWell() bool
	// Calls returns the calls so far: the first of them, and how many there were and failed.
	Calls() (first []api.ToolCall, all, failed int)
}

func (mcpServer) noun() string { return "server" }

// check refuses a run that nobody talks with.
func (mcpServer) check(m *machine, req run.Request, _ run.Input) error {
	name := req.Unit.Name
	if sessionOf(req.Extra) == nil {
		return fault.New(fault.Input, "%q is an MCP server, which is talked with and not run", name).
			WithHint("use /mcp/%s with an MCP client, `aod mcp run %s`, or `aod mcp call %s TOOL`", name, name, name)
	}
	return m.canTalk()
}

func (mcpServer) limits(of runtime.Limits) runtime.Limits { return of }

func (mcpServer) loadsAhead() bool { return false }

func (mcpServer) completeWarmSpec(*machine, *unit.Unit, *runtime.Spec) error { return nil }

// prepare connects the session's ends with the container's streams.
func (mcpServer) prepare(_ context.Context, x *execution, spec *runtime.Spec, _ runtime.Layout) error {
	x.talk = newStdioBridge(sessionOf(x.run.Extra))
	talkInstead(spec, x.run.Unit, x.talk)
	return nil
}

// talkInstead makes the spec that of a server whose streams are those of a bridge.
func talkInstead(spec *runtime.Spec, u *unit.Unit, t *stdioBridge) {
	spec.Console = &runtime.Console{
		Command: slices.Concat(spec.Image.Entrypoint, spec.Image.Cmd), Stdin: t.stdin, Stdout: t.stdout,
	}
	spec.Mode, spec.Durable = runtime.ModeStdio, false
	spec.Env = slices.Clone(spec.Env)
	if c, ok := u.Definition.(*capsule.Capsule); ok && c.MCP != nil {
		for _, name := range slices.Sorted(maps.Keys(c.MCP.Env)) {
			spec.Env = append(spec.Env, name+"="+c.MCP.Env[name])
		}
	}
}

func (mcpServer) adopt(*execution, *runtime.Spec) {}

// collect says how the session went. The program has not been stopped, or the session was over.
func (mcpServer) collect(_ context.Context, x *execution, end runtime.End) (run.Result, error) {
	s := x.talk.session
	_, all, failed := s.Calls()
	x.verdict.noteLimits(end)
	if !s.EndedWell() {
		return serverFailed(end.ExitCode, s.Err()), nil
	}
	success := 0
	output := fmt.Appendf(nil, `{"calls":%d,"failed":%d}`, all, failed)
	return run.Result{State: api.Completed, Outcome: api.Success, ExitCode: &success, Output: output}, nil
}

func (mcpServer) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	return wroteLargeFile("server", limits)
}

// SessionRules returns the rules of sessions with a unit; run.NoSession of one that is run.
func SessionRules(u *unit.Unit) (relay.Options, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.MCP == nil {
		return relay.Options{}, run.NoSession(u)
	}
	return relay.Options{Tools: c.MCP.Tools, Timeout: c.MCP.Timeout, Idle: c.MCP.Idle}, nil
}

func sessionOf(extra any) Talk {
	s, _ := extra.(Talk)
	return s
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

// stdioBridge is a session that is connected with the streams of a container.
type stdioBridge struct {
	session Talk
	stdin   *io.PipeReader // what the container reads
	toStdin *io.PipeWriter
	stdout  *io.PipeWriter // what the container writes
	said    *io.PipeReader
}

func newStdioBridge(s Talk) *stdioBridge {
	t := &stdioBridge{session: s}
	t.stdin, t.toStdin = io.Pipe()
	t.said, t.stdout = io.Pipe()
	return t
}

// begin passes messages on until end is called. The end of ctx ends the session.
func (t *stdioBridge) begin(ctx context.Context, log *runtime.Log) (end func()) {
	var talking sync.WaitGroup
	talking.Go(func() {
		t.session.Talk(t.toStdin, t.said,
			func(line []byte) { log.Add("stdout", append(line[:len(line):len(line)], '\n')) })
		_ = t.said.Close() // what the container still writes is dropped
	})
	stop := context.AfterFunc(ctx, func() {
		t.session.End(whyOver(context.Cause(ctx)))
		t.close()
	})
	return func() {
		stop()
		t.close()
		talking.Wait()
	}
}

// whyOver is what a client is told of the end of its session's run.
func whyOver(cause error) error {
	if errors.Is(cause, run.ErrTimeout) || errors.Is(cause, run.ErrDeadline) {
		return fault.Wrap(fault.Deadline, cause, "its time is up")
	}
	return fault.Wrap(fault.Unavailable, cause, "the session was ended")
}

func (t *stdioBridge) close() {
	_ = t.stdout.Close()
	_ = t.stdin.Close()
}

// errSessionOver is why a container is stopped whose session is over.
var errSessionOver = errors.New("the session is over")

// during passes messages on until end is called, and returns a context that also ends with the
// session. A nil bridge is none.
func (t *stdioBridge) during(ctx context.Context, log *runtime.Log) (during context.Context, end func()) {
	if t == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-t.session.Done():
			cancel(errSessionOver)
		case <-ctx.Done():
		}
	}()
	left := t.begin(ctx, log)
	return ctx, func() {
		left()
		cancel(nil)
	}
}

// note records the calls of the session. A nil bridge has none.
func (t *stdioBridge) note(r *run.Run) {
	if t == nil {
		return
	}
	calls, all, _ := t.session.Calls()
	r.Record.ToolCalls = calls
	if all > len(calls) {
		r.Warn("the session had %d calls; the record lists the first %d", all, len(calls))
	}
}

// lending calls wait, and gives the run's slot to others meanwhile if a session goes on: it
// mostly waits for its client.
func (a *attempt) lending(wait func()) {
	if a.x.talk == nil {
		wait()
		return
	}
	a.api.calls.Lend(context.Background(), wait)
}
