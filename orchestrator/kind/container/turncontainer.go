package container

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

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
	t.Record.Container = &api.Container{ID: v.id, Served: t.Session.Turn}
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
	v := &living{layout: layout, logBytes: spec.Limits.LogBytes}
	v.log = runtime.NewLog(v.logBytes, v.note)
	v.hearBy(t)
	if v.sandbox, err = t.containers.startSandbox(ctx, spec, layout, v.log); err != nil {
		return nil, err
	}
	v.adoptsAs(t.containers, v.sandbox.ID(), spec)
	timings := v.sandbox.Timings()
	t.Record.Container = &api.Container{ID: v.id}
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
	return layout, errors.Join(makeDirs(layout, t.startDir()), layout.WriteInput(t.Input.Payload.JSON()),
		layout.LinkInputs(t.InputDir()))
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
	v := &living{layout: layout, lines: t.talk.Logged.Plus(t.Logged()), logBytes: spec.Limits.LogBytes}
	v.adoptsAs(t.containers, id, spec)
	v.log = runtime.NewLog(v.logBytes, v.note)
	v.log.Skip(v.lines.Stdout, v.lines.Stderr)
	v.log.OnSkipped(t.LogAgain)
	v.hearBy(t)
	t.containers.logger.Info("adopting container", "session", t.Session.ID, "run", t.ID, "container", id)
	if v.sandbox, err = v.adopt(ctx, v.log); err != nil {
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
	v.watch(t.containers)
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
