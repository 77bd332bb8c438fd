package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Local runs units for one command: their runs live and die with it. Any number of Locals
// may share a data directory.
//
//	Home/bin/           the installed init
//	Home/cards/         model cards
//	Home/runs/ID/       what one Local has, with a lock that its process holds
//	Home/runs/ID/runs/  its runs, a directory each
//	Home/kept/RUN/      an attempt's directory that somebody wanted to keep
//	Home/history/RUN/   a run that has ended: see package history
type Local struct {
	*loop
	data *dataDir
	dir  *lockedDir
}

// longTime is more than any command takes.
const longTime = 365 * 24 * time.Hour

// NewLocal makes a directory for the runs in the data directory, and gives it to the kinds.
func NewLocal(opts Options) (_ *Local, err error) {
	opts = opts.withDefaults()
	opts.Queue, opts.QueueWait = math.MaxInt, longTime // a command's own runs all get their turn
	data, err := openDataDir(opts.Home)
	if err != nil {
		return nil, err
	}
	id, err := run.NewID()
	if err != nil {
		return nil, err
	}
	l := &Local{loop: newLoop(opts), data: data}
	if l.dir, err = data.make(id); err != nil {
		return nil, err
	}
	l.journal, l.kept = inMemory(), filepath.Join(data.path, "kept")
	l.home = run.Home{
		Dir: l.dir.path, Runs: runsIn(l.dir.path), Owner: data.owner, Bin: data.bin(),
		Cards: filepath.Join(data.path, "cards"),
		Disks: runtime.NewDisks(opts.MinFreeDisk, l.dir.path),
	}
	l.readRuns(nil)
	err = errors.Join(os.Mkdir(l.home.Runs, 0o700), l.kinds.Open(l.home), l.initFeatures(feature.Process{}))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Request asks Local for one run.
type Request struct {
	run.Request
	ID     string // "" makes a new one
	OutDir string // gets the output files; it is made only when there are some
	Keep   bool   // the attempt's directory is kept for a look
	// RerunOf is the run whose input this one is given again; "" is none.
	RerunOf string
	// From says where a flow begins, of which RerunOf was a run; the zero Rerun: at its start.
	From api.Rerun
	// History gets the run when it has ended, with its Source; nil: the run is forgotten.
	History *history.History
	Source  history.Source
	// Observe is told of everything as it happens, in this run and in those that it calls:
	// one call at a time for each of them. It must not block.
	Observe func(run.Event)
	// Find returns the unit that the run may call by name, or a NotFound fault; nil knows
	// none.
	Find func(ctx context.Context, name string) (*unit.Unit, error)
	// Answer answers the questions of this run and of those that it calls; nil: nobody does, and
	// they are denied. It may be called at the same time, and returns the cause when ctx ends, or
	// a *run.Denied.
	Answer func(ctx context.Context, q run.Question) (run.Answer, error)
}

// Ended is a run that has ended and is cleaned up.
type Ended struct {
	Record api.Record
	KeptAt string // where the attempt's directory was left; "" if it wasn't
	Past   error  // why the run isn't in the history that was asked for; nil: it is
}

// Run runs a unit and returns when the run has ended and is cleaned up. A wrong request is a
// fault with all violations: nothing was started, and the record has no id. When ctx ends,
// the run is cancelled. The record is complete in any case. The error is a fault of AOD or of
// the engine.
func (l *Local) Run(ctx context.Context, req Request) (Ended, error) {
	ctx = access.WithServer(ctx)
	asked := admission{
		Request: req.Request, id: req.ID, outDir: req.OutDir, keep: req.Keep, observe: req.Observe,
		units: finder(req.Find), rerunOf: req.RerunOf, people: answerer(req.Answer),
	}
	if err := l.ready(ctx, &asked); err != nil {
		return Ended{}, err
	}
	if req.From.From != "" {
		walk, err := req.History.Walk(req.RerunOf)
		if err != nil {
			return Ended{}, err
		}
		asked.taken, err = takeOver(req.Unit, walk.Steps, req.History.StateDir(req.RerunOf), req.From)
		if err != nil {
			return Ended{}, err
		}
	}
	j, err := l.admit(ctx, asked)
	if err != nil {
		return Ended{}, err
	}
	defer context.AfterFunc(ctx, func() { j.cancel(context.Cause(ctx)) })()
	j.drive()
	ended := Ended{Record: j.Record, KeptAt: j.keptAt()}
	if req.History != nil {
		past := history.Past{Record: j.Record, Source: req.Source, Timeout: req.Timeout}
		past.Walk, err = l.walkOf(context.WithoutCancel(ctx), j)
		ended.Past = errors.Join(err, req.History.Add(past, j.Dir))
	}
	if j.Record.Outcome == api.SystemError {
		return ended, j.fault
	}
	return ended, nil
}

// walkOf returns what is kept of a flow's run beside its record; nil: it is none of a flow.
func (l *Local) walkOf(ctx context.Context, j *job) (*history.Walk, error) {
	graph := capsule.GraphOf(j.Unit.Definition)
	if graph == nil {
		return nil, nil //nolint:nilnil // there is nothing to keep
	}
	steps, err := records.Steps(ctx, l.journal.Steps, j.ID)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(graph)
	return &history.Walk{Graph: text, Steps: steps}, err
}

// finder implements run.Units for a command. Nil finds nothing.
type finder func(ctx context.Context, name string) (*unit.Unit, error)

// Get implements run.Units.
func (f finder) Get(ctx context.Context, name string) (*unit.Unit, error) {
	if f == nil {
		return nil, fault.New(fault.NotFound, "there is no unit %q", name)
	}
	return f(ctx, name)
}

// Version implements run.Units: a command keeps none.
func (finder) Version(_ context.Context, name, version string) (*unit.Unit, error) {
	return nil, fault.New(fault.NotFound, "there is no version %s of %q", version, name)
}

// Close removes what Local has. It is called when no run goes on.
func (l *Local) Close() error {
	l.shutdown(context.Background(), true)
	err := l.kinds.Close()
	if l.isClean() {
		err = errors.Join(err, l.dir.remove())
	}
	return errors.Join(err, l.dir.release())
}

// isClean reports whether nothing of an attempt is left. If something is, its directory has
// to stay: it tells the next process what to sweep.
func (l *Local) isClean() bool {
	entries, err := os.ReadDir(l.home.Runs)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return hasAttempt(filepath.Join(l.home.Runs, e.Name()))
	})
}

// Sweep removes what dead processes left behind: directories whose lock nobody holds, and
// what the kinds have of the runs in them. Without such a directory it asks no engine. It
// returns the ids of the removed runs. What it can't remove stays for the next sweep.
func (l *Local) Sweep(ctx context.Context) (swept []string, err error) {
	orphans, err := l.data.orphans()
	if err != nil {
		return nil, err
	}
	for _, orphan := range orphans {
		ids, failure := l.sweep(ctx, orphan)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("sweep %s: %w", filepath.Base(orphan.path), failure))
			continue
		}
		swept = append(swept, ids...)
	}
	return swept, err
}

// sweep removes an orphan. What the kinds have goes first, and the directory that names it
// last.
func (l *Local) sweep(ctx context.Context, orphan *lockedDir) (ids []string, err error) {
	defer func() { err = errors.Join(err, orphan.release()) }()
	entries, err := os.ReadDir(runsIn(orphan.path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		ids = append(ids, entry.Name())
		if err := l.sweepRun(ctx, entry.Name(), filepath.Join(runsIn(orphan.path), entry.Name())); err != nil {
			return nil, err
		}
		l.logger.Warn("removed what a dead process left", "run", entry.Name())
	}
	return ids, orphan.remove()
}

// sweepRun removes what the kinds have of a run. It asks them only if an attempt began.
func (l *Local) sweepRun(ctx context.Context, id, dir string) (err error) {
	if !hasAttempt(dir) {
		return nil
	}
	for kind := range l.kinds.Each() {
		if sweeper, ok := kind.(run.Sweeper); ok {
			err = errors.Join(err, sweeper.SweepRun(ctx, id))
		}
	}
	return err
}

// runsIn returns the directory of the runs in the directory of a Local.
func runsIn(dir string) string { return filepath.Join(dir, "runs") }

// ownerOfPath returns the label by which the containers of a data directory are known.
func ownerOfPath(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:6])
}

// keptPath returns where the attempt directory of a run is kept.
func keptPath(kept, id string) string { return filepath.Join(kept, id) }

// keepOnly removes everything from a run's directory that isn't kept, and the directory if
// nothing is.
func keepOnly(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if layout.IsKept(entry.Name()) {
			_ = syscall.Rmdir(filepath.Join(dir, entry.Name())) // refused unless it is an empty directory
			continue
		}
		if err := safefs.RemoveTree(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	_ = os.Remove(dir) // refused unless empty
	return nil
}

// hasAttempt reports whether an attempt began in a run's directory: then kinds may have
// something outside of it.
func hasAttempt(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !layout.IsKept(e.Name()) })
}

// answerer implements run.People for a command: it asks whoever runs it.
type answerer func(ctx context.Context, q run.Question) (run.Answer, error)

// Ask implements run.People.
func (a answerer) Ask(ctx context.Context, _ *run.Run, q run.Question) (run.Answer, error) {
	if a == nil {
		return run.Answer{}, &run.Denied{
			Reason: "it asks a person, and nobody is there to answer",
			Hint:   "give the answer with --answer " + q.Address + "=ACTION",
		}
	}
	return a(ctx, q)
}
