package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// ApplyOptions say how changes are applied.
type ApplyOptions struct {
	Run   string // whose changes they are: a killed apply of another one has to be ended first
	Check bool   // nothing is written; what would keep the changes out is said
	// Earlier returns what the earlier turns of a session made; nil: it isn't a session. What was applied
	// of them may be there already, and is changed further.
	Earlier func() ([]api.Change, error)
	// Repositories lets changes make, or change, a repository that isn't in a .git: a fixture. Git
	// and the like start programs that a repository names.
	Repositories bool
	// Open returns the new content of a changed file.
	Open func(change api.Change) (io.ReadCloser, error)

	step func(what string) // for tests: called before each step that the disk sees
}

// Apply writes changes into a directory: all of them, or none. Each file must still be what the
// run got. Nothing is written through a link or into a .git, and no repository is made: a Forbidden
// fault has a finding for each file that would be in one. Where a process was killed within
// Apply, the same call goes on with it. The error is a fault: a Conflict one has a finding for
// each file that is in the way.
func Apply(dir string, changes []api.Change, o ApplyOptions) error {
	if err := CheckChanges(api.Changes{Changes: changes}); err != nil {
		return err
	}
	dir, err := checkedDir(dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	defer func() { _ = root.Close() }() // holds no data
	a := applying{root: root, opts: o, changes: changes}
	if a.opts.step == nil {
		a.opts.step = func(string) {}
	}
	if o.Check {
		return a.check(false)
	}
	return a.run()
}

type applying struct {
	root    *os.Root
	opts    ApplyOptions
	changes []api.Change
	earlier map[Entry]bool // what the files were after earlier turns; nil: nobody has asked
	stage   *stage
}

func (a *applying) run() (err error) {
	if a.stage, err = openStage(a.root); err != nil {
		return err
	}
	if begun := a.stage.begun; begun != nil {
		if begun.Run != a.opts.Run {
			a.stage.close()
			return fault.New(fault.Conflict, "an apply of the run %s was killed here", fault.Quote(begun.Run)).
				WithHint("end it first: repeat that apply, or remove %s to leave the files as they are", stageName)
		}
		a.changes = begun.Changes
	} else if err := a.prepare(); err != nil {
		return errors.Join(err, a.stage.end())
	}
	if err = a.check(true); err == nil {
		err = a.write()
	}
	if err != nil {
		a.stage.close()
		return err
	}
	a.opts.step("end")
	return a.stage.end()
}

// prepare checks the files, brings the new contents, and checks again: bringing takes a while.
func (a *applying) prepare() error {
	if err := a.check(false); err != nil {
		return err
	}
	for n, c := range a.changes {
		if c.Op == api.OpDelete {
			continue
		}
		a.opts.step("bring")
		if err := a.bring(n, c); err != nil {
			return err
		}
	}
	if err := a.check(false); err != nil {
		return err
	}
	a.opts.step("begin")
	return a.stage.begin(journal{Run: a.opts.Run, Changes: a.changes})
}

// bring stages a new content, which has to be the announced one.
func (a *applying) bring(n int, c api.Change) error {
	in, err := a.opts.Open(c)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if c.Mode == modeLink {
		raw, err := io.ReadAll(io.LimitReader(in, maxName+1))
		if err != nil {
			return err
		}
		if why := linkProblem(c.Path, string(raw)); why != "" || digestOf(string(raw)) != c.After {
			return notAnnounced(c)
		}
		return notWritten(a.root.Symlink(string(raw), content(n)))
	}
	perm := permOf(c.Mode)
	if info, err := a.root.Lstat(c.Path); err == nil && info.Mode().IsRegular() {
		perm = asExecutable(info.Mode().Perm(), c.Mode)
	}
	got := &reading{r: io.LimitReader(in, c.Size+1)}
	size, err := safefs.Copy(a.root, content(n), got, 0o600)
	if got.err != nil {
		return got.err
	}
	if err != nil {
		return notWritten(err)
	}
	staged, err := describe(a.root, content(n))
	if err != nil || size != c.Size || staged.SHA256 != c.After {
		return notAnnounced(c)
	}
	return notWritten(a.root.Chmod(content(n), perm))
}

// asExecutable returns the permissions that a file has, with or without those to execute.
func asExecutable(perm fs.FileMode, mode string) fs.FileMode {
	if mode == modeProgram {
		return perm | perm&0o444>>2
	}
	return perm &^ 0o111
}

func notAnnounced(c api.Change) error {
	return fault.New(fault.Internal, "the new content of %s isn't the one that was announced", fault.Quote(c.Path)).
		WithHint("nothing was written; try again")
}

// check finds the files that aren't any more what the run got. With begun it finds those that are
// neither that nor what the run made of them: a killed apply did a part of its work.
func (a *applying) check(begun bool) error {
	var found []fault.Finding
	done := 0
	for _, c := range a.changes {
		now, why := a.at(c)
		if now == after(c) && why == "" {
			if begun {
				continue
			}
			if done++; a.opts.Earlier != nil {
				continue
			}
		}
		odd := why != ""
		if why = conflict(c, now, why); why == "" {
			continue
		}
		switch applied, err := a.isEarlier(c.Path, now); {
		case err != nil:
			return err
		case odd || !applied:
			found = append(found, fault.Finding{File: c.Path, Message: why})
		}
	}
	switch {
	case done == len(a.changes) && done > 0:
		return fault.New(fault.Exists, "the changes are applied already: nothing was written")
	case len(found) == 0 && begun:
		return nil
	case len(found) == 0:
		return a.checkRepositories()
	case begun:
		return fault.New(fault.Conflict,
			"%d of the files were changed since the apply was killed: the others are as they were left", len(found)).
			WithFindings(found).WithHint("make them what they were, or remove %s to leave all as it is", stageName)
	}
	return fault.New(fault.Conflict, "%d of the %d changed files aren't any more what the run got: nothing was written",
		len(found), len(a.changes)).
		WithFindings(found).
		WithHint("run the agent again on the files as they are, or merge the patch in a git repository: "+
			"git add -A && aod diff %s --patch | git apply -3", a.opts.Run)
}

// isEarlier reports whether what stands at a path is what an earlier turn of the session made of it:
// nobody loses what the agent itself goes on with.
func (a *applying) isEarlier(name string, now Entry) (bool, error) {
	if a.opts.Earlier == nil {
		return false, nil
	}
	if a.earlier == nil {
		made, err := a.opts.Earlier()
		if err != nil {
			return false, err
		}
		a.earlier = map[Entry]bool{}
		for _, c := range made {
			was := after(c)
			was.Path = c.Path
			a.earlier[was] = true
		}
	}
	now.Path = name
	return a.earlier[now], nil
}

// conflict says what keeps a change from being written; "" if nothing does.
func conflict(c api.Change, now Entry, why string) string {
	switch was := before(c); {
	case why != "":
		return why
	case now == was:
		return ""
	case now == after(c):
		return "is already what the run made of it"
	case was == (Entry{}):
		return "is there already"
	case now == (Entry{}):
		return "is gone"
	case now.SHA256 == was.SHA256:
		return "has another mode"
	}
	return "was changed"
}

// at returns what stands at the path of a change: the zero Entry for nothing. why says that it
// can't be changed, whatever it is.
func (a *applying) at(c api.Change) (now Entry, why string) {
	now, err := describe(a.root, c.Path)
	now.Size = 0
	irregular := (*safefs.Irregular)(nil)
	switch {
	case err == nil:
		return now, ""
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, ""
	case !errors.As(err, &irregular):
		return Entry{}, "can't be read: " + safefs.Reason(err)
	case c.Op == api.OpDelete: // the file is gone, whatever took its place
		return Entry{}, ""
	case irregular.OnTheWay && a.isDeleted(c.Path):
		return Entry{}, ""
	case irregular.OnTheWay:
		return Entry{}, "lies below what " + irregular.Error()
	case irregular.What == safefs.Describe(fs.ModeDir) && a.isEmptied(c.Path):
		return Entry{}, ""
	}
	return Entry{}, irregular.Error()
}

// isDeleted reports whether the changes remove a file that stands where a directory of a new one
// will be.
func (a *applying) isDeleted(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if a.removes(dir) {
			return true
		}
	}
	return false
}

// isEmptied reports whether the changes remove all that is in a directory, in whose place they
// put a file.
func (a *applying) isEmptied(dir string) bool {
	leftOver := errors.New("something stays")
	return safefs.EachEntry(a.root, dir, func(entry fs.DirEntry) error {
		name := path.Join(dir, entry.Name())
		if a.goes(name, entry) {
			return nil
		}
		return leftOver
	}) == nil
}

// goes reports whether the changes remove what is there, and leave nothing in it.
func (a *applying) goes(name string, entry fs.DirEntry) bool {
	return entry.IsDir() && a.isEmptied(name) || a.removes(name)
}

func (a *applying) removes(name string) bool {
	return slices.ContainsFunc(a.changes, func(c api.Change) bool { return c.Path == name && c.Op == api.OpDelete })
}

// write does what the journal says, as far as it isn't done: first it removes, then it makes.
func (a *applying) write() error {
	for _, c := range a.changes {
		if now, why := a.at(c); c.Op != api.OpDelete || now == (Entry{}) && why == "" {
			continue
		}
		a.opts.step("remove")
		if err := a.root.Remove(c.Path); err != nil {
			return notWritten(err)
		}
		for dir := path.Dir(c.Path); dir != "." && a.root.Remove(dir) == nil; dir = path.Dir(dir) { // as git does
		}
	}
	dirs := map[string]bool{}
	for n, c := range a.changes {
		if now, _ := a.at(c); c.Op == api.OpDelete || now == after(c) {
			continue
		}
		a.opts.step("rename")
		if err := a.rename(content(n), c.Path); err != nil {
			return err
		}
		dirs[path.Dir(c.Path)] = true
	}
	a.opts.step("sync")
	for dir := range dirs {
		f, err := safefs.OpenDir(a.root, dir)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return notWritten(err)
		}
	}
	return nil
}

// rename puts a staged content in its place, whose directories are directories.
func (a *applying) rename(staged, name string) error {
	if err := a.makeDirs(path.Dir(name)); err != nil {
		return notWritten(err)
	}
	_, _, done, err := above(a.root, name)
	if err != nil {
		return notWritten(err)
	}
	done()
	if info, err := a.root.Lstat(name); err == nil && info.IsDir() {
		if err := a.root.Remove(name); err != nil {
			return notWritten(err)
		}
	}
	return notWritten(a.root.Rename(staged, name))
}

func (a *applying) makeDirs(dir string) error {
	if dir == "." {
		return nil
	}
	if err := a.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := a.root.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { // less the umask
		return err
	}
	return nil
}
