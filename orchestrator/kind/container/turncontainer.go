package container

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// sessionContainer is the container of a turn's session, and what another process needs to go on
// with it.
type sessionContainer struct {
	run     *run.Run
	x       *execution
	livings *livings
	config  *agent.Config
	talk    talkState
}

// keep stores what the session needs, with what the program told.
func (s *sessionContainer) keep(told ...api.AgentEvent) error {
	return s.run.KeepSession(s.talk, told...)
}

// live returns the container of the session that this process has; nil: none.
func (s *sessionContainer) live() *liveContainer {
	return s.livings.of(s.run.Session.ID)
}

// waits reports whether a program waits for its next message.
func (s *sessionContainer) waits(v *liveContainer) bool {
	return v != nil && !v.hasEnded() && s.talk.Agent.Pending == ""
}

// open returns the container of the session: the one that lives, one that an earlier process
// left, or a new one. Without any the turn is over.
func (s *sessionContainer) open(ctx context.Context) (v *liveContainer, over run.Result, err error) {
	pending := s.talk.Agent.Pending != ""
	mine := s.talk.Told == s.run.Session.Turn
	if v = s.live(); s.waits(v) {
		s.talk.Logged = v.setTurn(s.run)
		return v, over, s.brief(v)
	}
	id := ""
	if v == nil {
		if id, err = s.find(ctx); err != nil {
			return nil, over, err
		}
	}
	switch {
	case id != "" && (!pending || mine):
		v, err = s.takeOver(ctx, id)
		if err != nil || !v.hasEnded() || mine && pending {
			return v, over, err
		}
	case pending && mine:
		return nil, over, vanished(nil)
	}
	if s.talk.Container > 0 && s.talk.Agent.Next > 0 && !resumes(s.config) {
		const reason = "its program has ended, and can't take up a session again"
		s.run.Session.Over = reason
		return nil, turnFailed("the session can't go on: "+reason, "begin a new session"), nil
	}
	if err := s.renew(ctx); err != nil {
		return nil, over, err
	}
	v, err = s.begin(ctx)
	return v, over, err
}

// brief gives the living program the files of this turn, and takes away what is left of those of
// the turn before.
func (s *sessionContainer) brief(v *liveContainer) error {
	s.run.Record.Container = &api.Container{ID: v.id, Served: s.run.Session.Turn}
	if s.talk.Told != s.run.Session.Turn {
		if err := v.layout.DropOutput(); err != nil {
			return err
		}
	}
	return v.layout.RenewInput(s.run.InputDir())
}

// find returns the newest container of the session that an earlier process left; "": none. It
// removes others.
func (s *sessionContainer) find(ctx context.Context) (id string, err error) {
	if s.talk.Container == 0 {
		return "", nil
	}
	waiting, stop := s.run.Waiting(ctx)
	defer stop()
	m := s.x.machine
	if _, err := m.await(waiting); err != nil {
		return "", err
	}
	refs, err := runtime.Find(ctx, m.engine, s.run.Session.ID, m.home.Owner)
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Labels[runtime.LabelAttempt] == strconv.Itoa(s.talk.Container) {
			id = ref.ID
		}
	}
	return id, runtime.RemoveOthers(ctx, m.engine, s.run.Session.ID, m.home.Owner, s.talk.Container)
}

// renew ends the container of the session, and makes the state that of a program which begins.
func (s *sessionContainer) renew(ctx context.Context) error {
	if s.talk.Container == 0 {
		return nil
	}
	if err := s.livings.end(ctx, s.run.Session.ID); err != nil {
		return err
	}
	s.talk.Agent = s.talk.Agent.Renewed()
	s.talk.Staged, s.talk.Logged = 0, run.Lines{}
	return s.keep()
}

func (s *sessionContainer) dir() string { return filepath.Join(s.run.Session.Dir, layout.Live) }

// begin starts a new container for the session.
func (s *sessionContainer) begin(ctx context.Context) (*liveContainer, error) {
	image, _, err := s.x.images.forAttempt(ctx, s.run)
	if err != nil {
		return nil, err
	}
	layout, err := s.makeLayout(ctx, image)
	if err != nil {
		return nil, err
	}
	spec, err := s.liveSpec(image)
	if err != nil {
		return nil, err
	}
	if err := s.x.project.place(ctx, &spec, layout, spec.Dir); err != nil {
		return nil, err
	}
	s.talk.Container++
	spec.Attempt = s.talk.Container
	if err := s.keep(); err != nil {
		return nil, err
	}
	v := &liveContainer{layout: layout, logBytes: spec.Limits.LogBytes}
	v.log = runtime.NewLog(v.logBytes, v.note)
	v.setTurn(s.run)
	if v.sandbox, err = s.x.starter.start(ctx, spec, layout, v.log); err != nil {
		return nil, err
	}
	v.adoptsAs(s.x.machine, v.sandbox.ID(), spec)
	s.run.Record.Container = &api.Container{ID: v.id}
	noteStart(s.run, v.sandbox)
	return v, s.connect(v)
}

// makeLayout makes the directories of a new container. What the session keeps stays.
func (s *sessionContainer) makeLayout(ctx context.Context, image runtime.Image) (runtime.Layout, error) {
	layout, err := s.x.starter.newLayout(s.dir(), image, "")
	if err != nil {
		return layout, err
	}
	layout = s.x.session.keptIn(layout)
	if err := s.x.session.make(ctx, layout); err != nil {
		return layout, err
	}
	return layout, errors.Join(makeDirs(layout, s.startDir()), layout.WriteInput(s.run.Input.Payload.JSON()),
		layout.LinkInputs(s.run.InputDir()))
}

// liveSpec is the spec of the session's container.
func (s *sessionContainer) liveSpec(image runtime.Image) (runtime.Spec, error) {
	spec := s.x.spec(image)
	spec.Run, spec.Root, spec.Mode = s.run.Session.ID, s.run.Session.ID, runtime.ModeSession
	return spec, s.command(&spec)
}

// startDir is where the program starts.
func (s *sessionContainer) startDir() string { return path.Join(agent.Dir(s.config), s.run.Start.Dir) }

// command completes a spec with the program's arguments and environment.
func (s *sessionContainer) command(spec *runtime.Spec) error {
	values := agent.Values{
		Dir: s.startDir(), Run: s.run.Session.ID, Session: s.talk.idOr(s.run.Session.ID), Resume: s.talk.Agent.Next > 0,
	}
	argv, err := agent.Command(s.config, values)
	if err != nil {
		return err
	}
	c, err := wrappedOf(s.run.Unit)
	if err != nil {
		return err
	}
	wrap(spec, c)
	spec.Stdio, spec.Program, spec.Dir = nil, argv, values.Dir
	spec.Env = append(spec.Env, c.AgentEnv(values, s.run.Start)...)
	return nil
}

// takeOver goes on with a container that an earlier process started.
func (s *sessionContainer) takeOver(ctx context.Context, id string) (*liveContainer, error) {
	image, err := s.x.images.ensure(ctx, s.run)
	if err != nil {
		return nil, err
	}
	spec, err := s.liveSpec(image)
	if err != nil {
		return nil, err
	}
	spec.Attempt = s.talk.Container
	layout := s.x.session.keptIn(runtime.OpenLayout(s.dir(), ""))
	v := &liveContainer{layout: layout, lines: s.talk.Logged.Plus(s.run.Logged()), logBytes: spec.Limits.LogBytes}
	v.adoptsAs(s.x.machine, id, spec)
	v.log = runtime.NewLog(v.logBytes, v.note)
	v.log.Skip(v.lines.Stdout, v.lines.Stderr)
	v.log.OnSkipped(s.run.LogAgain)
	v.setTurn(s.run)
	s.x.machine.logger.Info("adopting container", "session", s.run.Session.ID, "run", s.run.ID, "container",
		id)
	if v.sandbox, err = v.adopt(ctx, v.log); err != nil {
		return nil, err
	}
	if err := s.connect(v); err != nil {
		return nil, err
	}
	return v, s.brief(v)
}

// connect begins to watch a container and to talk with its program, and does what an earlier
// process had stored and not done.
func (s *sessionContainer) connect(v *liveContainer) error {
	feed, err := v.layout.OpenFeed()
	if err != nil {
		return err
	}
	if at := s.talk.At; s.talk.Staged > 0 && feed.Len() == at {
		if err := feed.Give(s.talk.Staged); err != nil {
			return errors.Join(err, feed.Close())
		}
	}
	v.watch(s.x.machine)
	tail, err := v.layout.OpenTail(s.talk.Agent.Since, v.ended)
	if err != nil {
		return errors.Join(err, feed.Close())
	}
	v.journal = &turnJournal{feed: feed, tail: tail}
	pipes := agent.Pipes{Stdin: v.journal, Stdout: tail, Written: tail.Written}
	v.dialog, err = agent.NewDialog(s.config.Protocol, pipes, s.talk.Agent, v.journal,
		agent.Options{Dir: s.startDir(), RPC: s.config.RPC, Result: s.config.Result})
	if err == nil {
		s.livings.add(s.run.Session.ID, v)
	}
	return err
}
