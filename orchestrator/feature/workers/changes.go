package workers

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// changesDir is where what an attempt made of its project comes in.
func (l *lease) changesDir() string { return filepath.Join(l.dir(), "changes") }

// mostChanged is how many files may come of changes: as many as are looked at in a project.
const mostChanged = 250_000

// putChanges takes what an attempt made of its project. What came before is replaced.
func (l *lease) putChanges(from io.Reader) error {
	l.uploading.Lock()
	defer l.uploading.Unlock()
	err := safefs.RemoveTree(l.changesDir())
	if err == nil {
		err = os.MkdirAll(l.changesDir(), 0o700) //nolint:gosec // the lease's own, not the request's
	}
	if err != nil {
		return run.StorageFault(err)
	}
	// a patch has both sides of a change
	most := 4*l.run.Limits.OutputBytes + workspace.MaxChangesBytes
	files := 0
	return unpackInto(l.changesDir(), from, most, func(name string) bool {
		if files++; files > mostChanged {
			return false
		}
		dir, _, _ := strings.Cut(name, "/")
		return name == workspace.ChangesName || name == workspace.PatchName || dir == workspace.ContentsName
	})
}

// takeChanges moves what came to where the run has it, if it is what it has to be. Findings say why it isn't.
func (x *execution) takeChanges(l *lease) ([]fault.Finding, error) {
	from := l.changesDir()
	if _, err := os.Lstat(from); errors.Is(err, os.ErrNotExist) {
		from = x.run.ChangesDir() // an earlier process has moved it
	}
	x.f.listing.Lock() // a list of changes is large
	found, err := readChanges(from)
	x.f.listing.Unlock()
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.Input || kind == fault.TooLarge:
		return []fault.Finding{{Message: fault.Public(err).Msg}}, nil
	default:
		return nil, run.StorageFault(err)
	}
	if from != x.run.ChangesDir() {
		if err := errors.Join(safefs.RemoveTree(x.run.ChangesDir()), os.Rename(from, x.run.ChangesDir())); err != nil {
			return nil, run.StorageFault(err)
		}
	}
	x.run.Record.Changes = found.Counts()
	return nil, nil
}

// readChanges reads what is in a directory of changes, and holds the contents against it.
func readChanges(dir string) (api.Changes, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return api.Changes{}, fault.Wrap(fault.Input, err, "the changes haven't come")
	}
	if err != nil {
		return api.Changes{}, err
	}
	defer func() { _ = root.Close() }() // read only
	list, err := openIn(root, workspace.ChangesName)
	if err != nil {
		return api.Changes{}, err
	}
	defer func() { _ = list.Close() }() // read only
	raw, err := safefs.ReadAtMost(list, workspace.MaxChangesBytes)
	if errors.Is(err, safefs.ErrTooLarge) {
		return api.Changes{}, fault.Wrap(fault.TooLarge, err, "the list of changes is too long")
	}
	if err != nil {
		return api.Changes{}, err
	}
	found, err := workspace.ReadChanges(raw)
	for _, c := range found.Changes {
		if err == nil && c.Op != api.OpDelete {
			err = checkContent(root, c)
		}
	}
	return found, err
}

// openIn opens a file of a directory of changes.
func openIn(root *os.Root, name string) (*os.File, error) {
	file, _, err := safefs.OpenRegular(root, name)
	var special *safefs.Irregular
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &special) {
		err = fault.Wrap(fault.Input, err, "a file of the changes is missing, or is none")
	}
	return file, err
}

// checkContent holds the new content of a file against its change.
func checkContent(root *os.Root, c api.Change) error {
	content, err := openIn(root, path.Join(workspace.ContentsName, c.Path))
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // read only
	size, sum, err := safefs.Digest(content)
	if err == nil && (size != c.Size || sum != c.After) {
		err = fault.New(fault.Input, "a change hasn't the content that it says")
	}
	return err
}
