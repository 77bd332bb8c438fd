package container

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/agent"
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
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
	t.ctx = ctx
	return t.carryOut(ctx)
}

// Resume implements run.Execution: what the session has kept says how far the turn is.
func (t *turn) Resume(ctx context.Context) (run.Result, error) { return t.Attempt(ctx) }

// keep stores what the session needs, with what the program told.
func (t *turn) keep(told ...api.AgentEvent) error { return t.KeepSession(t.talk, told...) }

func (t *turn) carryOut(ctx context.Context) (run.Result, error) {
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

// open returns the container of the session: the one that lives, one that an earlier process
// left, or a new one. Without any the turn is over.
func (t *turn) open(ctx context.Context) (v *living, over run.Result, err error) {
	pending := t.talk.Agent.Pending != ""
	mine := t.talk.Told == t.Session.Turn
	if v = t.living(); t.waits(v) {
		t.talk.Logged = v.hearBy(t)
		return v, over, t.brief(v)
	}
	id := ""
	if v == nil {
		if id, err = t.find(ctx); err != nil {
			return nil, over, err
		}
	}
	switch {
	case id != "" && (!pending || mine):
		v, err = t.takeOver(ctx, id)
		if err != nil || !v.hasEnded() || mine && pending {
			return v, over, err
		}
	case pending && mine:
		return nil, over, vanished(nil)
	}
	if t.talk.Container > 0 && t.talk.Agent.Next > 0 && !resumes(t.config) {
		const reason = "its program has ended, and can't take up a session again"
		t.Session.Over = reason
		return nil, turnFailed("the session can't go on: "+reason, "begin a new session"), nil
	}
	if err := t.renew(ctx); err != nil {
		return nil, over, err
	}
	v, err = t.begin(ctx)
	return v, over, err
}

// brief gives the living program the files of this turn, and takes away what is left of those of
// the turn before.
func (t *turn) brief(v *living) error {
	t.Record.Container = &api.Container{ID: v.sandbox.ID(), Served: t.Session.Turn}
	if t.talk.Told != t.Session.Turn {
		if err := v.layout.DropOutput(); err != nil {
			return err
		}
	}
	return v.layout.RenewInput(t.InputDir())
}

// find returns the newest container of the session that an earlier process left; "": none. It
// removes others.
func (t *turn) find(ctx context.Context) (id string, err error) {
	if t.talk.Container == 0 {
		return "", nil
	}
	waiting, stop := t.Waiting(ctx)
	defer stop()
	c := t.containers
	if _, err := c.awaitEngine(waiting); err != nil {
		return "", err
	}
	refs, err := runtime.Find(ctx, c.engine, t.Session.ID, c.home.Owner)
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Labels[runtime.LabelAttempt] == strconv.Itoa(t.talk.Container) {
			id = ref.ID
		}
	}
	return id, runtime.RemoveOthers(ctx, c.engine, t.Session.ID, c.home.Owner, t.talk.Container)
}

// renew ends the container of the session, and makes the state that of a program which begins.
func (t *turn) renew(ctx context.Context) error {
	if t.talk.Container == 0 {
		return nil
	}
	if err := t.containers.EndSession(ctx, t.Session.ID); err != nil {
		return err
	}
	t.talk.Agent = t.talk.Agent.Renewed()
	t.talk.Staged, t.talk.Logged = 0, run.Lines{}
	return t.keep()
}

func (t *turn) dir() string { return filepath.Join(t.Session.Dir, "live") }

// begin starts a new container for the session.
func (t *turn) begin(ctx context.Context) (*living, error) {
	image, err := t.image(ctx)
	if err != nil {
		return nil, err
	}
	layout, err := t.makeLayout(image)
	if err != nil {
		return nil, err
	}
	spec, err := t.liveSpec(image)
	if err != nil {
		return nil, err
	}
	if err := t.placeProject(ctx, &spec, layout, spec.Dir); err != nil {
		return nil, err
	}
	t.talk.Container++
	spec.Attempt = t.talk.Container
	if err := t.keep(); err != nil {
		return nil, err
	}
	v := &living{layout: layout}
	v.log = runtime.NewLog(spec.Limits.LogBytes, v.note)
	v.hearBy(t)
	if v.sandbox, err = t.containers.startSandbox(ctx, spec, layout, v.log); err != nil {
		return nil, err
	}
	timings := v.sandbox.Timings()
	t.Record.Container = &api.Container{ID: v.sandbox.ID()}
	t.Record.Timings.Create, t.Record.Timings.Start = run.Milliseconds(timings.Create), run.Milliseconds(timings.Start)
	return v, t.connect(v)
}

// makeLayout makes the directories of a new container. What the session keeps stays.
func (t *turn) makeLayout(image runtime.Image) (runtime.Layout, error) {
	layout, err := t.containers.newLayout(t.dir(), image, "")
	if err != nil {
		return layout, err
	}
	layout = t.withSession(layout)
	if err := t.makeSession(layout); err != nil {
		return layout, err
	}
	return layout, errors.Join(makeDirs(layout, t.startDir()), layout.WriteInput(t.Input.Payload.JSON()), layout.LinkInputs(t.InputDir()))
}

// liveSpec is the spec of the session's container.
func (t *turn) liveSpec(image runtime.Image) (runtime.Spec, error) {
	spec := t.spec(image)
	spec.Run, spec.Root, spec.Feed, spec.Control = t.Session.ID, t.Session.ID, true, false
	return spec, t.command(&spec)
}

// startDir is where the program starts.
func (t *turn) startDir() string { return path.Join(agent.Dir(t.config), t.Start.Dir) }

// command completes a spec with the program's arguments and environment.
func (t *turn) command(spec *runtime.Spec) error {
	values := agent.Values{
		Dir: t.startDir(), Run: t.Session.ID, Session: t.talk.idOr(t.Session.ID), Resume: t.talk.Agent.Next > 0,
	}
	argv, err := agent.Command(t.config, values)
	if err != nil {
		return err
	}
	c, err := wrappedOf(t.Unit)
	if err != nil {
		return err
	}
	wrap(spec, c)
	spec.Stdio, spec.Program, spec.Dir = nil, argv, values.Dir
	spec.Env = append(spec.Env, c.AgentEnv(values, t.Start)...)
	return nil
}

// takeOver goes on with a container that an earlier process started.
func (t *turn) takeOver(ctx context.Context, id string) (*living, error) {
	image, err := t.containers.ensureImage(ctx, t.Run)
	if err != nil {
		return nil, err
	}
	spec, err := t.liveSpec(image)
	if err != nil {
		return nil, err
	}
	spec.Attempt = t.talk.Container
	layout := t.withSession(runtime.OpenLayout(t.dir(), ""))
	v := &living{layout: layout, lines: t.talk.Logged.Plus(t.Logged())}
	v.log = runtime.NewLog(spec.Limits.LogBytes, v.note)
	v.log.Skip(v.lines.Stdout, v.lines.Stderr)
	v.log.OnSkipped(t.LogAgain)
	v.hearBy(t)
	t.containers.logger.Info("adopting container", "session", t.Session.ID, "run", t.ID, "container", id)
	if v.sandbox, err = runtime.Adopt(ctx, t.containers.engine, id, spec, layout, v.log); err != nil {
		return nil, err
	}
	if err := t.connect(v); err != nil {
		return nil, err
	}
	return v, t.brief(v)
}

// connect begins to watch a container and to talk with its program, and does what an earlier
// process had stored and not done.
func (t *turn) connect(v *living) error {
	feed, err := v.layout.OpenFeed()
	if err != nil {
		return err
	}
	if at := t.talk.At; t.talk.Staged > 0 && feed.Len() == at {
		if err := feed.Give(t.talk.Staged); err != nil {
			return errors.Join(err, feed.Close())
		}
	}
	v.watch()
	tail, err := v.layout.OpenTail(t.talk.Agent.Since, v.ended)
	if err != nil {
		return errors.Join(err, feed.Close())
	}
	v.wire = &wire{feed: feed, tail: tail}
	v.dialog, err = agent.NewDialog(t.config.Protocol, agent.Pipes{Stdin: v.wire, Stdout: tail}, t.talk.Agent, v.wire,
		agent.Options{Dir: t.startDir(), RPC: t.config.RPC, Result: t.config.Result})
	if err == nil {
		t.containers.livings.Store(t.Session.ID, v)
	}
	return err
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
	bytesBefore, _ := v.log.Bytes()
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
	kept, truncated := v.log.Bytes()
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
