package workers

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// far is what is stored of a session whose turns go on at workers, in the place of what its kind keeps: see
// run.Session.Saved.
type far struct {
	Worker string `json:"worker,omitempty"` // where its files lie, and its container lives
	// Lease is that of the turn which has left them so; "": what the worker has isn't good. Home and Changes are the
	// leases of the turns whose files are here.
	Lease   string          `json:"lease,omitempty"`
	Home    string          `json:"home,omitempty"`
	Changes string          `json:"changes,omitempty"`
	Kept    json.RawMessage `json:"kept,omitempty"` // by its kind, at the end of that turn

	Telling string `json:"telling,omitempty"` // the lease of the turn that goes on
	Told    int64  `json:"told,omitempty"`    // how much that has told
}

// farSession is a session's Saved, if its turns go on at workers.
type farSession struct {
	Far *far `json:"far,omitempty"`
}

// farOf returns what is stored of a session that goes on at workers; nil: it doesn't, or has had no turn.
func farOf(saved json.RawMessage) *far {
	var s farSession
	if len(saved) == 0 || json.Unmarshal(saved, &s) != nil {
		return nil
	}
	return s.Far
}

// session returns what is stored of the run's session, which has to have one.
func (x *execution) session() *far {
	if x.far == nil {
		if x.far = farOf(x.run.Session.Saved); x.far == nil {
			x.far = &far{}
		}
	}
	return x.far
}

// beginSession has a turn begin: what no turn needs any more of the files that are here is removed.
func (x *execution) beginSession(l *lease) {
	s := x.run.Session
	if s == nil {
		return
	}
	x.far = nil // earlier turns have ended since, and another attempt may have told
	from := x.session()
	from.Telling, from.Told = l.ID, 0
	files, _ := filepath.Glob(turnFile(s, "*", "*")) // a good pattern
	for _, file := range files {
		if file != homeFile(s, from.Home) && file != changesFile(s, from.Changes) {
			_ = os.Remove(file) // it goes with the session
		}
	}
	x.f.registry.find(l.Worker).drop(restOrder(s.ID))
	x.giveSession(l)
}

// giveSession gives a lease what its worker is told of the run's session, if it has one.
func (x *execution) giveSession(l *lease) {
	s := x.run.Session
	if s == nil {
		return
	}
	from := x.session()
	l.from, l.session = *from, &wire.Session{
		ID: s.ID, Turn: s.Turn, Single: s.Single, Project: s.Project, Saved: from.Kept, Home: from.Home != "",
		Changes: from.Changes != "",
	}
	if from.Worker == l.Worker {
		l.session.After = from.Lease
	}
	if from.Telling == l.ID {
		l.telling.before = from.Told
	}
}

func homeFile(s *run.Session, lease string) string { return turnFile(s, layout.Home, lease) }

func changesFile(s *run.Session, lease string) string { return turnFile(s, layout.Changes, lease) }

func turnFile(s *run.Session, what, lease string) string {
	return filepath.Join(s.Dir, layout.Turns, what+"-"+lease+".tar")
}

// keepTold stores what the program has said since. It is told once, whatever dies. What an earlier process has stored
// comes again: a secret may have begun in it.
func (x *execution) keepTold(l *lease) error {
	events, again := l.telling.unkept()
	x.run.ToldAgain(events[:again]...)
	if fresh := events[again:]; len(fresh) > 0 {
		s := x.session()
		s.Told += int64(len(fresh))
		if err := x.run.KeepSession(farSession{s}, fresh...); err != nil {
			return err
		}
	}
	l.telling.kept(len(events))
	return nil
}

// keepTurn has what the turn left of its session stored with its end.
func (x *execution) keepTurn(l *lease, end *wire.SessionEnd) error {
	if x.run.Session == nil || end == nil {
		return nil
	}
	x.run.Session.Over = run.Bounded(end.Over, run.MaxMessage)
	if end.Saved == nil {
		return nil
	}
	s := *x.session()
	if s.Worker != "" && s.Worker != l.Worker {
		x.f.registry.find(s.Worker).put(restOrder(x.run.Session.ID), wire.Order{Over: x.run.Session.ID})
	}
	s.Worker, s.Lease, s.Kept, s.Telling, s.Told = l.Worker, l.ID, end.Saved, "", 0
	if end.Home && !x.run.Session.Single {
		s.Home = l.ID
	}
	if x.run.Record.Changes != nil && !x.run.Session.Single {
		if err := x.keepChanges(changesFile(x.run.Session, l.ID)); err != nil {
			return err
		}
		s.Changes = l.ID
	}
	x.far = &s
	return x.run.KeepTurn(farSession{&s})
}

// keepChanges keeps what the turns have made of their project, for a machine that hasn't got it.
func (x *execution) keepChanges(to string) error {
	return run.StorageFault(writeWhole(to, func(w io.Writer) error {
		out := tar.NewWriter(w)
		return errors.Join(out.AddFS(os.DirFS(x.run.ChangesDir())), out.Close())
	}))
}

// writeWhole writes a file, which has its name when it is whole and on the disk.
func writeWhole(to string, write func(w io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil { //nolint:gosec // the session's own, not the request's
		return err
	}
	part := filepath.Join(filepath.Dir(to), safefs.TempPrefix+filepath.Base(to))
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // likewise
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(part)) //nolint:gosec // likewise
	}
	return os.Rename(part, to) //nolint:gosec // likewise
}

// loseSession notes that what a lost worker has of the session isn't good any more: the next turn begins with what the
// turn before has left here.
func (x *execution) loseSession(l *lease) error {
	s := x.run.Session
	if s == nil || s.Single || x.session().Worker != l.Worker {
		return nil
	}
	x.session().Lease = ""
	return x.run.KeepTurn(farSession{x.session()})
}

// sessions are those of a server that go on at workers.
type sessions struct{ *Feature }

// placeOf returns what a turn of a session needs of a machine beside what its unit does, and the one that has its
// container; "": none has. The turns of a session go on at workers, or all of them here.
func (sessions) placeOf(r *run.Run) (need, machine string) {
	s := r.Session
	if s == nil || s.Single || s.Saved == nil {
		return "", ""
	}
	at := farOf(s.Saved)
	if at == nil {
		return labelServer, ""
	}
	if at.Lease != "" {
		machine = at.Worker
	}
	return labelWorker, machine
}

// keepers are the workers for which a turn waits that has its container there: those that aren't drained, and not lost.
// The queue asks for them with its lock held.
type keepers struct{ known sync.Map } // by name

func (k *keepers) has(name string) bool {
	_, is := k.known.Load(name)
	return is
}

// set says whether a worker is one of them.
func (k *keepers) set(name string, is bool) {
	if is {
		k.known.Store(name, true)
		return
	}
	k.known.Delete(name)
}

// noteLost has the queue see which workers are lost by now.
func (g *registry) noteLost() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.all {
		if g.keepers.has(w.name) && g.presenceOf(w) == lost {
			g.show(w)
		}
	}
}

// conversant ends sessions where they are.
type conversant struct {
	run.Conversant
	sessions
}

// EndSession implements run.Conversant. A worker does it when it hears of it, and removes the files of a session that
// is over by itself.
func (c conversant) EndSession(ctx context.Context, id string) error {
	at, over, err := c.stored(ctx, id)
	switch {
	case err != nil:
		return err
	case at != nil && over:
		c.registry.find(at.Worker).put(restOrder(id), wire.Order{Over: id})
		return nil
	case at != nil:
		c.registry.find(at.Worker).put(restOrder(id), wire.Order{Rest: id})
		return nil
	case c.opts.Elsewhere:
		return nil // no turn of it has begun
	}
	return c.Conversant.EndSession(ctx, id)
}

func restOrder(session string) string { return "rest/" + session }

// stored returns where a session goes on, and whether it is over; nil: it doesn't go on at a worker.
func (s sessions) stored(ctx context.Context, id string) (at *far, over bool, err error) {
	row, err := s.process.Store.Sessions.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, true, nil
	}
	return farOf(row.Private), row.Closed, err
}

// mostSessions is how many a worker may say that it holds: a server has fewer.
const mostSessions = 4096

// overOf returns which of the sessions that a worker holds it may remove: they are over, or go on elsewhere.
func (s sessions) overOf(ctx context.Context, worker string, ids []string) (over []string, err error) {
	busy := map[string]bool{}
	for _, l := range s.leases.held(worker) {
		if l.run.Session != nil {
			busy[l.run.Session.ID] = true
		}
	}
	for _, id := range ids[:min(len(ids), mostSessions)] {
		at, closed, err := s.stored(ctx, id)
		if err != nil {
			return nil, err
		}
		if !busy[id] && (closed || at == nil || at.Worker != worker || at.Lease == "") {
			over = append(over, id)
		}
	}
	return over, nil
}

// keepRest forgets the orders for sessions that a worker doesn't hold any more.
func (b *outbox) keepRest(held []string) {
	b.forget(func(o wire.Order) bool {
		id := o.Rest + o.Over
		return id != "" && !slices.Contains(held, id)
	})
}

// telling is what the program of an attempt says of its turn.
type telling struct {
	mu     sync.Mutex
	said   []api.AgentEvent // and not looked at yet by who leads the run
	next   int64            // number of what it says next, in this process: it begins anew
	before int64            // how much of it an earlier process has stored
	heard  pause.Notifier   // of what is stored
}

// unkept returns what the program has said that this process hasn't looked at, and how much of that an earlier one has
// stored.
func (t *telling) unkept() (events []api.AgentEvent, again int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.said), min(max(t.before-t.next+int64(len(t.said)), 0), int64(len(t.said)))
}

// kept notes that so much of it is stored now.
func (t *telling) kept(n int) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	t.said = t.said[n:]
	t.mu.Unlock()
	t.heard.Notify()
}

// has reports whether so much has come to this process.
func (t *telling) has(count int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return count <= t.next
}

// take takes what the program said, of which the first has a number.
func (t *telling) take(first int64, told []api.AgentEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first > t.next { // what is between has to come before
		return
	}
	fresh := told[min(t.next-first, int64(len(told))):]
	for _, e := range fresh {
		e.Kind, e.ID = run.Bounded(e.Kind, run.MaxType), run.Bounded(e.ID, run.MaxMessage)
		t.said = append(t.said, e)
	}
	t.next += int64(len(fresh))
}

// stored returns how much of all has come to this process, when all of that is stored.
func (t *telling) stored(ctx context.Context) (int64, error) {
	for {
		moved := t.heard.After()
		t.mu.Lock()
		next, left := t.next, len(t.said)
		t.mu.Unlock()
		if left == 0 {
			return next, nil
		}
		if err := untilOver(ctx, moved); err != nil {
			return 0, err
		}
	}
}

func (h face) home(w http.ResponseWriter, _ *http.Request, l *lease) error {
	return h.sendKept(w, l, func(s *run.Session, at far) string { return homeFile(s, at.Home) })
}

func (h face) earlier(w http.ResponseWriter, _ *http.Request, l *lease) error {
	return h.sendKept(w, l, func(s *run.Session, at far) string { return changesFile(s, at.Changes) })
}

// sendKept answers with a file that the turns before have left.
func (h face) sendKept(w http.ResponseWriter, l *lease, of func(*run.Session, far) string) error {
	if l.run.Session == nil {
		return fault.New(fault.NotFound, "the run is no turn of a session")
	}
	file, err := os.Open(of(l.run.Session, l.from))
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "the session has none")
	}
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = file.Close() }() // read only
	w.Header().Set("Content-Type", "application/x-tar")
	_, err = io.Copy(w, file)
	return err
}

// putHome takes what the programs of a session remember. It is looked at by machines alone that unpack it for such a
// program again.
func (h face) putHome(w http.ResponseWriter, r *http.Request, l *lease) error {
	if s := l.run.Session; s == nil || s.Single {
		return fault.New(fault.NotFound, "the run is no turn of a session that goes on")
	}
	l.uploading.Lock()
	defer l.uploading.Unlock()
	body := httpwire.BodyOf(r, wire.MostHome(l.run.Limits.OutputBytes))
	err := writeWhole(homeFile(l.run.Session, l.ID), func(to io.Writer) error {
		_, err := io.Copy(to, httpwire.Streamed(r.Context(), body))
		return err
	})
	if err != nil {
		return body.Or(run.StorageFault(err))
	}
	return done(w)
}
