package backup

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// A backup is a tar, compressed with gzip:
//
//	backup.json   what it is
//	runs/ID/…     the files of the runs
//	sessions/ID/… what the sandboxes of open sessions keep
//	schedules/ID/… files that the runs of schedules get
//	units/NAME/…  every version of every unit
//	aod.db        the store
//	SHA256SUMS    the digest of each file before, as sha256sum prints it
//
// It has neither the token nor the owner of the home: a home that is restored beside the old
// one must not take that one's containers for its own.
const (
	headName = "backup.json"
	sumsName = "SHA256SUMS"

	backupFormat = 1
)

// header is the content of backup.json.
type header struct {
	Format    int       `json:"aod_backup"`
	Version   string    `json:"aod_version"`
	CreatedAt time.Time `json:"created_at"`
}

// Report says what a backup holds. Bytes are those of its files, uncompressed.
type Report struct {
	Runs  int64 `json:"runs"`
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Target is where a backup goes.
type Target struct {
	File    string
	Replace bool // it may take the place of what has its name already
}

// Write writes a home as it is at one moment to a file. A Service may work in the home
// meanwhile. The file has the mode 0600 and is on the disk when Write returns; whatever goes
// wrong before, a file of that name stays as it was. The error is a fault: NotFound for a home
// without a store, Unavailable for a damaged one, Conflict where another backup writes the same
// file, Exists where there is one that may not be replaced. The version is that of this program.
func Write(ctx context.Context, home string, to Target, version string) (report Report, err error) {
	if _, err := os.Stat(filepath.Join(home, layout.Database)); err != nil {
		return report, fault.Wrap(fault.NotFound, err, "there is nothing of a server in %q", home).
			WithHint("name its data directory with --data DIR or AOD_DATA")
	}
	w, err := openWorkplace(to.File)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	if err := to.free(); err != nil {
		return report, err
	}
	began, snapshot := time.Now(), filepath.Join(w.dir, layout.Database)
	if err := store.Snapshot(ctx, filepath.Join(home, layout.Database), snapshot); err != nil {
		return report, err
	}
	if report, err = writeBackup(ctx, home, w.dir, version); err != nil {
		return report, writeFault(err)
	}
	if err := to.free(); err != nil { // somebody may have put something there meanwhile
		return report, err
	}
	err = writeFault(errors.Join(os.Rename(filepath.Join(w.dir, archiveName), to.File),
		safefs.Sync(filepath.Dir(to.File))))
	if err != nil {
		return report, err
	}
	return report, note(home, began)
}

// note has the home know when its last backup was begun, which has what it had then.
func note(home string, at time.Time) error {
	text := at.UTC().Format(time.RFC3339) + "\n"
	err := safefs.Replace(filepath.Join(home, layout.BackedUp), []byte(text), safefs.ReplaceOptions{Mode: 0o644})
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the backup is whole, and its time can't be noted in %q", home).
			WithHint("the data directory has to be writable for whoever makes its backups")
	}
	return nil
}

// free returns an Exists fault where something has the name that may not be replaced.
func (t Target) free() error {
	_, err := os.Lstat(t.File)
	if isThere := err == nil; t.Replace || !isThere {
		return nil
	}
	return fault.New(fault.Exists, "%q is there already", t.File).
		WithHint("give another name, or --replace: an older backup stays until the new one is whole")
}

const archiveName = "archive"

// writeFault explains what went wrong with the files. A fault stays as it is.
func writeFault(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the backup can't be written").
		WithHint("is there room where it goes? It takes that of the database and of the compressed files")
}

// writeBackup writes the archive of a home and a snapshot of its store, both in their
// directories.
func writeBackup(ctx context.Context, home, work, version string) (Report, error) {
	a, err := newArchiver(home, work)
	if err != nil {
		return Report{}, err
	}
	err = a.head(header{Format: backupFormat, Version: version, CreatedAt: time.Now().UTC()})
	if err == nil {
		err = a.addStored(ctx, filepath.Join(work, layout.Database))
	}
	if err == nil {
		err = a.addUnits(ctx)
	}
	if err == nil {
		err = a.addSnapshot(work)
	}
	return a.report, errors.Join(err, a.close(err == nil))
}

// addStored adds the files of the runs and the open sessions that a snapshot has, and closes that
// again.
func (a *archiver) addStored(ctx context.Context, snapshot string) (err error) {
	s, err := store.Open(snapshot, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Health(ctx); err != nil {
		return err
	}
	if err := a.addRuns(ctx, s.Runs); err != nil {
		return err
	}
	if err := a.addSessions(ctx, s.Sessions); err != nil {
		return err
	}
	return a.addSchedules(ctx, s.Schedules)
}

func (a *archiver) addRuns(ctx context.Context, s *store.Runs) error {
	filter := store.Filter{Limit: 1000}
	for {
		page, err := s.List(ctx, filter)
		if err != nil {
			return err
		}
		for _, row := range page.Runs {
			if err := a.addRun(ctx, row); err != nil {
				return err
			}
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return nil
		}
	}
}

// addRun adds what is kept of a run. It may be pruned meanwhile. What an attempt works with is
// left out, and so are files of a result that isn't stored yet.
func (a *archiver) addRun(ctx context.Context, row store.Run) error {
	a.report.Runs++
	dir := "runs/" + row.ID
	names := []string{
		layout.Input, layout.State, layout.Base, layout.Manifest, layout.Artifacts, layout.Log,
		layout.Transcript,
	}
	if row.Finished || hasOutcome(row) {
		names = append(names, layout.Output, layout.Changes)
	}
	for _, name := range names {
		if err := a.tree(ctx, dir+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// hasOutcome reports whether a run that goes on has its result already.
func hasOutcome(row store.Run) bool {
	var record api.Record
	return json.Unmarshal(row.Record, &record) == nil && record.Outcome != ""
}

// addUnits adds the versions of all units. That of the current file is added before it: a
// version may become current meanwhile, and an older one may be pruned.
func (a *archiver) addUnits(ctx context.Context) error {
	entries, err := fs.ReadDir(a.root.FS(), "units")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || isTemp(entry.Name()) {
			continue
		}
		if err := a.unit(ctx, "units/"+entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

// addSchedules adds the files that a snapshot's schedules give to their runs. They may be replaced
// meanwhile: such a schedule has none then, and its runs say so.
func (a *archiver) addSchedules(ctx context.Context, s *store.Schedules) error {
	for before := int64(0); ; {
		rows, err := s.List(ctx, store.Owned{}, before, 0)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			before = s.Behind(row)
			if row.Files == "" {
				continue
			}
			if err := a.tree(ctx, layout.Schedules+"/"+row.Files); err != nil {
				return err
			}
		}
	}
}

// openWorkplace makes the directory beside a file in which that is prepared. What a dead process
// left in it is removed; a living one is a Conflict.
func openWorkplace(file string) (*workplace, error) {
	dir := filepath.Join(filepath.Dir(file), safefs.TempPrefix+filepath.Base(file))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault.Wrap(fault.Input, err, "nothing can be written beside %q", file).
			WithHint("does its directory exist?")
	}
	lock, err := safefs.Lock(filepath.Join(dir, layout.Lock))
	if errors.Is(err, safefs.ErrLocked) {
		return nil, fault.Wrap(fault.Conflict, err, "another process prepares %q", file).
			WithHint("wait for its end, or use another name")
	}
	if err != nil {
		return nil, run.StorageFault(err)
	}
	w := &workplace{dir: dir, lock: lock}
	if err := w.empty(); err != nil {
		return nil, errors.Join(run.StorageFault(err), lock.Close())
	}
	return w, nil
}

// workplace is a locked directory for what isn't whole yet.
type workplace struct {
	dir  string
	lock *safefs.LockFile
}

func (w *workplace) empty() error {
	entries, err := os.ReadDir(w.dir)
	for _, entry := range entries {
		if entry.Name() != layout.Lock {
			err = errors.Join(err, safefs.RemoveTree(filepath.Join(w.dir, entry.Name())))
		}
	}
	return err
}

func (w *workplace) remove() error {
	return errors.Join(w.empty(), os.RemoveAll(w.dir), w.lock.Close())
}
