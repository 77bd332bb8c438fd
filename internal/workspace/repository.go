package workspace

import (
	"io/fs"
	"path"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// What git looks for in a directory to take it for a repository, whatever its name is.
const (
	hasHead = 1 << iota
	hasObjects
	hasRefs
	hasCommon // which says where the objects and the refs are
)

// foreignDirs are the directories in which other systems for versions keep settings that name
// programs. A .git is refused before.
var foreignDirs = []string{".hg", ".sl", ".jj", ".bzr", ".pijul", "_darcs"}

// repositories says of each directory, by its plain path, what git would find in it.
type repositories map[string]uint8

// add takes the path of a file that will be there.
func (r repositories) add(name string) {
	for name = plain(name); name != "."; name = path.Dir(name) {
		if found := sign(path.Base(name)); found != 0 {
			r[path.Dir(name)] |= found
		}
	}
}

// sign is what the plain name of a file or a directory says to git.
func sign(base string) uint8 {
	switch {
	case base == "head":
		return hasHead
	case base == "objects":
		return hasObjects
	case base == "refs":
		return hasRefs
	case called(base, "commondir"):
		return hasCommon
	}
	return 0
}

// around returns the repository in which a file would be; "" if it is in none.
func (r repositories) around(name string) string {
	const bare, linked = hasHead | hasObjects | hasRefs, hasHead | hasCommon
	for dir := plain(name); ; dir = path.Dir(dir) {
		switch has := r[dir]; {
		case has&bare == bare, has&linked == linked, isForeign(dir):
			return dir
		case dir == ".":
			return ""
		}
	}
}

func isForeign(name string) bool {
	return slices.ContainsFunc(foreignDirs, func(dir string) bool { return called(path.Base(name), dir) })
}

// checkRepositories refuses changes within what would be a repository once they are written, with
// all that is there already: git and the like start programs that a repository names.
func (a *applying) checkRepositories() error {
	if a.opts.Repositories {
		return nil
	}
	found, err := a.repositories()
	if err != nil {
		return err
	}
	var findings []fault.Finding
	for _, c := range a.changes {
		if dir := found.around(c.Path); dir != "" && c.Op != api.OpDelete {
			findings = append(findings,
				fault.Finding{File: c.Path, Message: "is in " + fault.Quote(dir) + ", which would be a repository"})
		}
	}
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, "the changes make a repository, or change one: nothing was written").
		WithFindings(findings).
		WithHint("git and the like start programs that a repository names; is it a fixture that you have read? Then " +
			"say so: --with-repositories")
}

// repositories looks at what the changes make, and at what is there in the directories above.
func (a *applying) repositories() (repositories, error) {
	found, seen := repositories{}, map[string]bool{}
	for _, c := range a.changes {
		if c.Op == api.OpDelete {
			continue
		}
		found.add(c.Path)
		for dir := path.Dir(c.Path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if err := a.addThere(found, dir); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// addThere takes what is in a directory and stays there.
func (a *applying) addThere(found repositories, dir string) error {
	if info, err := a.root.Lstat(dir); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // it will be a new directory
	}
	err := safefs.EachEntry(a.root, dir, func(entry fs.DirEntry) error {
		name := path.Join(dir, entry.Name())
		if sign(plain(entry.Name())) != 0 && !a.goes(name, entry) {
			found.add(name)
		}
		return nil
	})
	if err != nil {
		return unreadable(dir, err)
	}
	return nil
}
