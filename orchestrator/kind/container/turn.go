package container

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// turn implements run.Execution for a turn of a session whose program is talked with.
//
// A session that lives on: a turn talks with a container labelled with the session's id. Its journal stages what the
// program is to read and stores the state that led to it before the program sees it. turn.end leaves the rest to be
// stored with the run's end, in one transaction. The next turn adopts the container: liveContainer.rejoin.
// project.makeKept copies the project of all turns, whole or not at all.
type turn struct {
	run       *run.Run
	x         *execution
	config    *agent.Config
	container *sessionContainer
	approver  approver
	told      []api.AgentEvent // by the program, and stored with the turn's end
	left      *liveContainer   // what is to be tidied up when the turn's end is stored; nil: nothing
	spent     bool             // the program of that can't have another turn
	ctx       context.Context  //nolint:containedctx // of the attempt, for what the dialog asks
}

func newTurn(x *execution, livings *livings, config *agent.Config) *turn {
	return &turn{
		run: x.run, x: x, config: config,
		container: &sessionContainer{run: x.run, x: x, livings: livings, config: config},
		approver:  approver{run: x.run, config: config},
	}
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

// Lives reports whether a run is a turn of a session whose program lives on between its turns.
func (c *Containers) Lives(r *run.Run) bool { return talksWith(r) != nil }

// Attempt implements run.Execution.
func (t *turn) Attempt(ctx context.Context) (run.Result, error) {
	var err error
	if t.container.talk, err = t.x.session.saved(); err != nil { // what was kept of the session
		return run.Result{}, err
	}
	return t.x.given(t.x.outage.outlast(ctx, t))
}

// Resume implements run.Execution: what the session has kept says how far the turn is.
func (t *turn) Resume(ctx context.Context) (run.Result, error) { return t.Attempt(ctx) }

// entersAgain implements reentrant.
func (t *turn) entersAgain(ctx context.Context, err error) bool { return t.x.entersAgain(ctx, err) }

// letGo implements reentrant. The container is the session's.
func (t *turn) letGo() { t.x.letGo() }

// runAttempt implements reentrant.
func (t *turn) runAttempt(ctx context.Context) (run.Result, error) {
	t.ctx = ctx
	if err := t.start(); err != nil {
		return run.Result{}, err
	}
	v, over, err := t.container.open(ctx)
	if v == nil || err != nil {
		return over, err
	}
	server, err := t.x.apis.open(ctx, v.layout, t.x.limits())
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
	case t.run.State() == api.Starting || t.run.State() == api.Running:
		return nil
	case t.container.waits(t.container.live()):
		return t.run.Pass(api.Starting)
	}
	return t.run.Enter(api.Starting, "")
}

// converse gives the program its message, and returns how the turn ended.
func (t *turn) converse(ctx context.Context, v *liveContainer, server *apiServer) (run.Result, error) {
	if t.run.State() != api.Running { // stored with the message, before the program has that
		started := time.Now().UTC()
		t.run.Record.StartedAt = &started
		if err := t.run.Pass(api.Running); err != nil {
			return run.Result{}, err
		}
	}
	began := time.Now()
	bytesBefore, _ := v.logged()
	limited, stop := context.WithTimeoutCause(ctx, t.x.limits().Timeout-time.Since(*t.run.Record.StartedAt),
		run.ErrTimeout)
	defer stop()
	defer server.endCallsWith(limited)()
	t.ctx = limited
	v.setTurn(t.run)
	defer v.setTurn(nil)
	v.journal.connect(t)
	defer v.journal.connect(nil)
	reply, err := t.say(limited, v)
	t.run.Record.Timings.Run = run.Milliseconds(time.Since(began))
	if errors.Is(err, runtime.ErrDetach) {
		return run.Result{}, err
	}
	kept, truncated := v.logged()
	t.run.Record.Log.Bytes, t.run.Record.Log.Truncated = kept-bytesBefore, truncated
	t.x.apis.note(server, nil)
	return t.end(ctx, limited, v, reply, err)
}

// say has the dialog make the turn. The end of this process isn't the turn's: the program hears
// nothing of it.
func (t *turn) say(ctx context.Context, v *liveContainer) (agent.Reply, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, runtime.ErrDetach) {
			v.disconnect()
		} else {
			cancel(cause)
		}
	})()
	reply, err := v.dialog.Turn(inner, t.message())
	if errors.Is(context.Cause(ctx), runtime.ErrDetach) {
		return reply, runtime.ErrDetach
	}
	var broken error
	if t.told, broken = v.journal.rest(); broken != nil {
		return reply, broken
	}
	return reply, err
}

// message is what the program is told: the field message of the input, or the whole input where
// it has none, and where the files are that came with it.
func (t *turn) message() string {
	text, ok := t.run.Input.Payload.Get("message")
	message, isText := text.(string)
	if !ok || !isText {
		message = string(t.run.Input.Payload.JSON())
	}
	lines := []string{message}
	for _, ref := range t.run.Unit.Contract.Input.FileRefs(t.run.Input.Payload) {
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
		t.x.machine.logger.Warn("output of a turn not removed", "session", t.run.Session.ID,
			fault.LogAttr(err))
	}
	if !t.spent {
		return
	}
	if err := t.container.renew(ctx); err != nil { // likewise
		t.x.machine.logger.Warn("container of a session not ended", "session", t.run.Session.ID,
			fault.LogAttr(err))
	}
}

// Discard implements run.Execution. There is one attempt.
func (t *turn) Discard(context.Context) {}

// Remove implements run.Execution: of a session that ends with its turn.
func (t *turn) Remove(ctx context.Context) error {
	if !t.run.Session.Single {
		return nil
	}
	return t.container.livings.end(ctx, t.run.Session.ID)
}

// Release implements run.Execution. The container is released with the kind.
func (t *turn) Release() {}

// Shares implements run.Sharer.
func (t *turn) Shares() bool { return false }

// approver decides what the program of a session may do.
type approver struct {
	run    *run.Run
	config *agent.Config
}

// permit decides what the program asks to be let do.
func (a *approver) permit(ctx context.Context, p agent.Permission) (option string, err error) {
	switch a.config.Approval {
	case agent.Allow:
		if i := slices.IndexFunc(p.Options, func(o agent.Option) bool { return o.Allows }); i >= 0 {
			return p.Options[i].ID, nil
		}
	case agent.Ask:
		return a.askPerson(ctx, p)
	}
	return "", nil
}

// permitTime is how long a person has to answer a permission request where agent.yaml doesn't say.
const permitTime = 10 * time.Minute

// askPerson asks people. What nobody answers is refused.
func (a *approver) askPerson(ctx context.Context, p agent.Permission) (option string, err error) {
	var ids []string
	shown := map[string]string{}
	for _, o := range p.Options {
		ids, shown[o.ID] = append(ids, o.ID), o.Name
	}
	if len(ids) == 0 {
		return "", nil
	}
	show, err := json.Marshal(shown)
	if err != nil {
		return "", err
	}
	answer, err := a.run.Ask(ctx, run.Question{
		Address: "permission/" + p.ID, Kind: api.QuestionApproval, Text: p.Text, Show: show, Answers: ids,
		Approvers: a.config.Approvers, Until: time.Now().Add(cmp.Or(a.config.AskTime, permitTime)),
	})
	var denied *run.Denied
	if errors.As(err, &denied) {
		a.run.Warn("a permission was refused: %s", denied.Reason)
		return "", nil
	}
	return answer.Action, err
}

// isStopped reports whether the turn is to end, and not only this process.
func (t *turn) isStopped() bool {
	return t.ctx.Err() != nil && !errors.Is(context.Cause(t.ctx), runtime.ErrDetach)
}
