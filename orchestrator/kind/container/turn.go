package container

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// turn implements run.Execution for a turn of a session whose program is talked with.
type turn struct {
	*execution
	config *agent.Config
	talk   talkState
	told   []api.AgentEvent // by the program, and stored with the turn's end
	left   *living          // what is to be tidied up when the turn's end is stored; nil: nothing
	spent  bool             // the program of that can't have another turn
	ctx    context.Context  //nolint:containedctx // of the attempt, for what the dialog asks
}

// talkState is what another process needs to go on with a session: run.Session.Saved.
type talkState struct {
	Agent     agent.State `json:"agent"`
	Container int         `json:"container,omitempty"` // the number of the newest one, from 1; 0: there was none
	Told      int         `json:"told,omitempty"`      // the turn whose message the program was told last
	Staged    int64       `json:"staged,omitempty"`    // bytes that the program is given at At, if that isn't done yet
	At        int64       `json:"at,omitempty"`
	Logged    run.Lines   `json:"logged,omitzero"` // of the container's log, before that of the turn which goes on
}

// talksWith reports whether the program of a run is talked with, in its protocol.
func talksWith(r *run.Run) *agent.Config {
	if config := talker(r.Unit); config != nil && r.Session != nil && config.Protocol != "" {
		return config
	}
	return nil
}

// Attempt implements run.Execution.
func (t *turn) Attempt(ctx context.Context) (run.Result, error) {
	var err error
	if t.talk, err = t.savedTalk(); err != nil { // what was kept of the session
		return run.Result{}, err
	}
	return t.outlast(ctx, t.carryOut)
}

// Resume implements run.Execution: what the session has kept says how far the turn is.
func (t *turn) Resume(ctx context.Context) (run.Result, error) { return t.Attempt(ctx) }

// keep stores what the session needs, with what the program told.
func (t *turn) keep(told ...api.AgentEvent) error { return t.KeepSession(t.talk, told...) }

func (t *turn) carryOut(ctx context.Context) (run.Result, error) {
	t.ctx = ctx
	if err := t.start(); err != nil {
		return run.Result{}, err
	}
	v, over, err := t.open(ctx)
	if v == nil || err != nil {
		return over, err
	}
	server, err := t.openAPI(ctx, v.layout, t.limits())
	if err != nil {
		return run.Result{}, err
	}
	result, err := t.converse(ctx, v, server)
	server.close(whyCallsEnd(err))
	return result, err
}

// start enters Starting. Where the program waits for its message nothing starts, and that is stored
// with the message.
func (t *turn) start() error {
	switch {
	case t.State() == api.Starting || t.State() == api.Running:
		return nil
	case t.waits(t.living()):
		return t.Pass(api.Starting)
	}
	return t.Enter(api.Starting, "")
}

// living returns the container of the session that this process has; nil: none.
func (t *turn) living() *living {
	v, _ := t.containers.livings.Load(t.Session.ID)
	lives, _ := v.(*living)
	return lives
}

// waits reports whether a program waits for its next message.
func (t *turn) waits(v *living) bool {
	return v != nil && !v.hasEnded() && t.talk.Agent.Pending == ""
}

// converse gives the program its message, and returns how the turn ended.
func (t *turn) converse(ctx context.Context, v *living, server *apiServer) (run.Result, error) {
	if t.State() != api.Running { // stored with the message, before the program has that
		started := time.Now().UTC()
		t.Record.StartedAt = &started
		if err := t.Pass(api.Running); err != nil {
			return run.Result{}, err
		}
	}
	began := time.Now()
	bytesBefore, _ := v.logged()
	limited, stop := context.WithTimeoutCause(ctx, t.limits().Timeout-time.Since(*t.Record.StartedAt), run.ErrTimeout)
	defer stop()
	defer server.endCallsWith(limited)()
	t.ctx = limited
	v.hearBy(t)
	defer v.hearBy(nil)
	v.wire.connect(t)
	defer v.wire.connect(nil)
	reply, err := t.say(limited, v)
	t.Record.Timings.Run = run.Milliseconds(time.Since(began))
	if errors.Is(err, runtime.ErrDetach) {
		return run.Result{}, err
	}
	kept, truncated := v.logged()
	t.Record.Log.Bytes, t.Record.Log.Truncated = kept-bytesBefore, truncated
	t.noteCalls(server)
	return t.end(ctx, limited, v, reply, err)
}

// say has the dialog make the turn. The end of this process isn't the turn's: the program hears
// nothing of it.
func (t *turn) say(ctx context.Context, v *living) (agent.Reply, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, runtime.ErrDetach) {
			v.hangUp()
		} else {
			cancel(cause)
		}
	})()
	reply, err := v.dialog.Turn(inner, t.message())
	if errors.Is(context.Cause(ctx), runtime.ErrDetach) {
		return reply, runtime.ErrDetach
	}
	var broken error
	if t.told, broken = v.wire.rest(); broken != nil {
		return reply, broken
	}
	return reply, err
}

// message is what the program is told: the field message of the input, or the whole input where
// it has none, and where the files are that came with it.
func (t *turn) message() string {
	text, ok := t.Input.Payload.Get("message")
	message, isText := text.(string)
	if !ok || !isText {
		message = string(t.Input.Payload.JSON())
	}
	lines := []string{message}
	for _, ref := range t.Unit.Contract.Input.FileRefs(t.Input.Payload) {
		lines = append(lines, runtime.InputFile(ref.Name))
	}
	return strings.Join(lines, "\n")
}

// Settle implements run.Execution. The container isn't the run's, but what this turn leaves in it is.
func (t *turn) Settle(ctx context.Context) {
	if t.left == nil {
		return
	}
	if err := t.left.layout.DropOutput(); err != nil { // the next turn tries again
		t.containers.logger.Warn("output of a turn not removed", "session", t.Session.ID, fault.LogAttr(err))
	}
	if !t.spent {
		return
	}
	if err := t.renew(ctx); err != nil { // likewise
		t.containers.logger.Warn("container of a session not ended", "session", t.Session.ID, fault.LogAttr(err))
	}
}

// Discard implements run.Execution. There is one attempt.
func (t *turn) Discard(context.Context) {}

// Remove implements run.Execution: of a session that ends with its turn.
func (t *turn) Remove(ctx context.Context) error {
	if !t.Session.Single {
		return nil
	}
	return t.containers.EndSession(ctx, t.Session.ID)
}

// Release implements run.Execution. The container is released with the kind.
func (t *turn) Release() {}

// Shares implements run.Sharer.
func (t *turn) Shares() bool { return false }
