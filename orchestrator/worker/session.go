package worker

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// sessions are those of which this worker has the files, a directory each, and may have a container. One that isn't
// what its last turn left is fetched again.
type sessions struct{ dir string }

func (s sessions) of(id string) string { return filepath.Join(s.dir, id) }

// afterFile has the lease of the turn whose end a session's directory is.
const afterFile = "after"

// isAfter reports whether a session is as the turn of a lease has left it.
func (s sessions) isAfter(id, lease string) bool {
	raw, err := os.ReadFile(filepath.Join(s.of(id), afterFile))
	return err == nil && lease != "" && string(raw) == lease
}

// leave notes which turn has left a session as it is.
func (s sessions) leave(id, lease string) error {
	return run.StorageFault(safefs.Replace(filepath.Join(s.of(id), afterFile), []byte(lease),
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true, Synced: true}))
}

// all returns the ids of the sessions.
func (s sessions) all() (ids []string) {
	dirs, _ := os.ReadDir(s.dir) // what can't be read is tried again
	for _, dir := range dirs {
		ids = append(ids, dir.Name())
	}
	return ids
}

// idle are the sessions of which no turn goes on here.
func (w *Worker) idle() (ids []string) {
	busy := map[string]bool{}
	for _, h := range w.all() {
		busy[h.sessionID()] = true
	}
	for _, id := range w.sessions.all() {
		if !busy[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// rest ends the container of a session, and removes its files where it is over. A turn of it that comes meanwhile
// waits; where one goes on, nothing is done.
func (w *Worker) rest(id string, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resting[id] != nil {
		return
	}
	var ending []*held
	for _, h := range w.held {
		switch {
		case h.sessionID() != id:
		case h.now().Ended == nil:
			return
		default:
			ending = append(ending, h)
		}
	}
	done := make(chan struct{})
	w.resting[id] = done
	w.underway.Go(func() {
		for _, h := range ending {
			<-h.over
		}
		if err := w.endSession(id, over); err != nil {
			w.logger.Warn("session not ended", "session", id, fault.LogAttr(err))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.resting, id)
		close(done)
	})
}

// endSession ends a session's container, and with its files nothing of it is left.
func (w *Worker) endSession(id string, over bool) error {
	err := w.opts.Kind.EndSession(context.WithoutCancel(w.life), id)
	if err == nil && over {
		err = run.StorageFault(safefs.RemoveTree(w.sessions.of(id)))
	}
	return err
}

// awaitRest waits until a session's container has ended that was to.
func (w *Worker) awaitRest(id string) {
	w.mu.Lock()
	done := w.resting[id]
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

// sessionID is that of the session of which the attempt is a turn, and not the only one; "": of none.
func (h *held) sessionID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.entry.Assignment; a != nil && a.Session != nil && !a.Session.Single {
		return a.Session.ID
	}
	return ""
}

// talk is what an attempt has of its session beside its directory.
type talk struct {
	said  *spool[api.AgentEvent] // by the program
	saved json.RawMessage        // what the kind kept last in this attempt; nil: nothing. held.mu guards it
	count int64                  // of what was said by then, likewise
}

// giveSession makes the run a turn of its session.
func (h *held) giveSession() (err error) {
	e := h.now()
	of := e.Assignment.Session
	if of == nil {
		return nil
	}
	if h.talk.said, err = openSpool(filepath.Join(h.run.Dir, "said"), e.Said, func(api.AgentEvent) {}); err != nil {
		return err
	}
	h.talk.saved, h.talk.count = e.Session, e.Said
	s := &run.Session{
		ID: of.ID, Turn: of.Turn, Dir: filepath.Join(h.run.Dir, "session"), Single: of.Single, Project: of.Project,
		Saved: of.Saved,
	}
	if !of.Single {
		s.Dir = h.worker.sessions.of(of.ID)
	}
	if e.Session != nil {
		s.Saved = e.Session
	}
	h.run.Session = s
	return nil
}

// keep has what the kind kept of the session, and what the program said, be stored with what is stored next.
func (h *held) keep(saved json.RawMessage, told []api.AgentEvent) error {
	count, err := h.talk.said.add(told...)
	if err != nil {
		return run.StorageFault(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.talk.saved, h.talk.count = saved, count
	return nil
}

// KeepSession implements run.Host.
func (h host) KeepSession(saved json.RawMessage, told []api.AgentEvent) error {
	if err := h.keep(saved, told); err != nil {
		return err
	}
	return h.save()
}

// KeepTurn implements run.Host. What isn't written the end of the turn finds again.
func (h host) KeepTurn(saved json.RawMessage, told []api.AgentEvent) {
	if err := h.keep(saved, told); err != nil {
		h.worker.logger.Error("what a program said isn't stored", "run", h.run.ID, fault.LogAttr(err))
	}
}

// Ask implements run.Services: people answer at the server.
func (h host) Ask(ctx context.Context, q run.Question) (run.Answer, error) {
	asks := wire.Question{
		Address: q.Address, Kind: q.Kind, Text: q.Text, Show: q.Show, Answers: q.Answers, Approvers: q.Approvers,
	}
	if !q.Until.IsZero() {
		asks.Left = max(time.Until(q.Until), time.Millisecond)
	}
	for link := h.worker.link; ; {
		var answered wire.Answered
		err := link.repeat(ctx, "ask", func() error {
			return link.call(ctx, leasePath(h.lease(), wire.Ask), asks, &answered)
		})
		switch {
		case err != nil:
			return run.Answer{}, err
		case answered.Denied != "":
			return run.Answer{}, &run.Denied{Reason: answered.Denied}
		case !answered.Pending:
			return run.Answer{Action: answered.Action}, nil
		}
	}
}

// said returns what the program has said that the server doesn't have.
func (h *held) said() (first int64, some []api.AgentEvent, after int64, err error) {
	if h.talk.said == nil {
		return 0, nil, 0, nil
	}
	return h.talk.said.next()
}

// heard notes how much of what the program has said the server has: up to what it was told last, or less.
func (h *held) heard(count, first int64, told int, after int64) error {
	switch {
	case told == 0:
		return nil
	case count == first+int64(told):
		h.talk.said.took(count, after)
		return nil
	}
	return h.sayFrom(count)
}

// sayFrom tells what the program has said from what the server hasn't.
func (h *held) sayFrom(count int64) error {
	if h.talk.said == nil {
		return nil
	}
	return h.talk.said.goBackTo(count)
}

// sessionEnd is what the server is told of the session at the end of a turn; nil: nothing has changed.
func (h *held) sessionEnd() *wire.SessionEnd {
	h.mu.Lock()
	saved := h.talk.saved
	h.mu.Unlock()
	s := h.run.Session
	if s == nil || saved == nil && s.Over == "" {
		return nil
	}
	end := &wire.SessionEnd{Saved: saved, Over: s.Over}
	if s.Single || s.Over != "" {
		return end
	}
	home := filepath.Join(s.Dir, layout.Home)
	if _, err := os.Lstat(home); err != nil {
		return end
	}
	if end.Home = canPack(home, h.run.Limits.OutputBytes); !end.Home {
		h.run.Warn("what the session remembers is more than limits.output, and stays at its worker alone")
	}
	return end
}

const (
	mostEntries  = 100_000 // of what programs remember
	mostUnpacked = 300_000 // of that, and of changes of a project
	entryBytes   = 2 << 10 // that the name and the end of an entry take in an archive, about
)

// canPack reports whether what is in a directory goes to the server, by the limit of a turn's output.
func canPack(dir string, outputBytes int64) bool {
	entries, packed := 0, int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if entries++; entries > mostEntries {
			return errTooMany
		}
		if err != nil {
			return nil //nolint:nilerr // it isn't packed
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			packed += info.Size()
		}
		return nil
	})
	return err == nil && packed+int64(entries)*entryBytes <= wire.MostHome(outputBytes)
}

var errTooMany = errors.New("a directory has too many entries")

// sendLeft brings what the session remembers to the server. Where that is refused for good, because it has grown
// meanwhile, the server is told of none.
func (h *held) sendLeft(ctx context.Context, ended *wire.Ended) error {
	if ended.Session == nil || !ended.Session.Home {
		return nil
	}
	err := carrier{h}.sendHome(ctx)
	if err == nil || mayPass(err) || errors.Is(err, errVoid) || errors.Is(err, errRevoked) || ctx.Err() != nil {
		return err
	}
	h.worker.logger.Warn("what a session remembers isn't sent", "run", h.run.ID, fault.LogAttr(err))
	end := *ended.Session
	end.Home = false
	ended.Session = &end
	return nil
}

// leaveSession notes that the session is as this turn has left it.
func (h *held) leaveSession() error {
	if end := h.now().Ended.Session; end != nil && end.Saved != nil && h.sessionID() != "" {
		id := h.sessionID()
		return h.worker.sessions.leave(id, h.lease())
	}
	return nil
}

// fetchSession brings what the turns before have left, unless it is here.
func (c carrier) fetchSession(ctx context.Context) error {
	id, e := c.sessionID(), c.now()
	if id == "" || e.Record != nil || c.worker.sessions.isAfter(id, e.Assignment.Session.After) {
		return nil
	}
	if err := c.worker.endSession(id, true); err != nil {
		return err
	}
	left := filepath.Join(c.run.Session.Dir, layout.Left)
	if err := os.MkdirAll(left, 0o700); err != nil {
		return run.StorageFault(err)
	}
	if e.Assignment.Session.Home {
		home := filepath.Join(left, layout.Home)
		err := c.unpack(ctx, wire.Home, func(from io.Reader) error { return unpackTree(home, from) })
		if err := c.withoutLost(err, "what its programs remember"); err != nil {
			return err
		}
	}
	if e.Assignment.Session.Changes {
		return c.withoutLost(c.fetchLeft(ctx, left), "what its turns have made of the project")
	}
	return nil
}

// withoutLost has a turn begin without what the server hasn't any more, which may be so after a restore.
func (c carrier) withoutLost(err error, what string) error {
	if fault.Is(err, fault.NotFound) {
		c.run.Warn("the server has lost %s of the session", what)
		return nil
	}
	return err
}

// fetchLeft brings the project as the turns before have left it.
func (c carrier) fetchLeft(ctx context.Context, left string) error {
	made, project := filepath.Join(left, layout.Changes), filepath.Join(left, layout.Project)
	if err := c.unpack(ctx, wire.Changes, func(from io.Reader) error { return unpackTree(made, from) }); err != nil {
		return err
	}
	if err := c.fetchProject(ctx); err != nil {
		return err
	}
	if err := workspace.Clone(ctx, c.run.BaseDir(), project, workspace.CloneOptions{}); err != nil {
		return run.StorageFault(err)
	}
	raw, err := safefs.ReadNamed(filepath.Join(made, workspace.ChangesName), workspace.MaxChangesBytes)
	if err != nil {
		return run.StorageFault(err)
	}
	changes, err := workspace.ReadChanges(raw)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(made, workspace.ContentsName))
	if errors.Is(err, fs.ErrNotExist) { // nothing but deletions
		root, err = os.OpenRoot(made)
	}
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // read only
	return workspace.Apply(project, changes.Changes, workspace.ApplyOptions{
		Run: c.run.ID, Repositories: true,
		Open: func(change api.Change) (io.ReadCloser, error) { return root.Open(change.Path) },
	})
}

// unpack has what the server packs unpacked, whose stream may break off.
func (c carrier) unpack(ctx context.Context, part string, do func(io.Reader) error) error {
	packed, err := c.open(ctx, part)
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }() // it was read
	source := &run.Source{Reader: packed}
	if err = do(source); err != nil && source.Err != nil {
		return lostIf(source.Err)
	}
	return err
}

// sendHome brings what the programs of the session remember to the server.
func (c carrier) sendHome(ctx context.Context) error {
	return c.stream(ctx, leasePath(c.lease(), wire.Home), func(w io.Writer) error {
		root, err := os.OpenRoot(filepath.Join(c.run.Session.Dir, layout.Home))
		if err != nil {
			return run.StorageFault(err)
		}
		defer func() { _ = root.Close() }() // read only
		return packTree(w, root)
	})
}

// packTree packs a directory of a program's, which may be writing to it: its files, directories and links. What can't
// be read, the program has closed or removed: it is left out.
func packTree(w io.Writer, root *os.Root) error {
	out := tar.NewWriter(w)
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil && d != nil && d.IsDir() {
			return fs.SkipDir
		}
		if err != nil || name == "." {
			return nil //nolint:nilerr // see above
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		head := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(info.Mode().Perm())}
		switch {
		case d.IsDir():
			return out.WriteHeader(head)
		case d.Type() == fs.ModeSymlink:
			head.Typeflag, head.Name = tar.TypeSymlink, name
			if head.Linkname, err = root.Readlink(name); err != nil {
				return nil //nolint:nilerr // likewise
			}
			return out.WriteHeader(head)
		case d.Type().IsRegular():
			_, err = packFile(out, root, name, math.MaxInt64)
		}
		return err
	})
	return errors.Join(err, out.Close())
}

// unpackTree unpacks what packTree has packed, into an empty directory. A program has written it: nothing of it leaves
// the directory.
func unpackTree(dir string, from io.Reader) error {
	if err := errors.Join(safefs.RemoveTree(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return run.StorageFault(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	in := tar.NewReader(from)
	for entries := 0; ; entries++ {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if entries > mostUnpacked {
			err = errTooMany
		}
		if err == nil {
			err = unpackEntry(root, head, in)
		}
		if err != nil {
			return run.StorageFault(err)
		}
	}
}

func unpackEntry(root *os.Root, head *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(head.Name, "/")
	if head.Typeflag == tar.TypeDir {
		return safefs.MkdirAll(root, name, 0o700)
	}
	if err := safefs.MkdirAll(root, path.Dir(name), 0o700); err != nil {
		return err
	}
	if head.Typeflag == tar.TypeSymlink {
		return root.Symlink(head.Linkname, name)
	}
	mode := fs.FileMode(head.Mode)&0o700 | 0o600 //nolint:gosec // no more of it
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// liveLayout is that of the container with which the attempt's turn talks, if it is one of such a session.
func (c carrier) liveLayout() (_ runtime.Layout, talks bool) {
	if !c.worker.opts.Kind.Lives(c.run) {
		return runtime.Layout{}, false
	}
	return runtime.OpenLayout(filepath.Join(c.run.Session.Dir, layout.Live), ""), true
}
