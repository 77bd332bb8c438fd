package registry

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// marks are the files that mark a directory as a capsule. One is enough: a missing file is
// then reported.
var marks = []string{"agent.yaml", "schema.json", "Dockerfile"}

// found is a directory that is meant as a unit, with its reading.
type found struct {
	path string
	reading
}

// lookFor reads every directory that may hold a unit of a name ("" is any) and returns
// those that exist, in the order of the sources.
func (r *Registry) lookFor(ctx context.Context, name string) ([]found, error) {
	var all []found
	for _, d := range r.survey() {
		what, err := d.look(ctx, r, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found{path: d.path, reading: what})
	}
	return all, nil
}

// find returns the directory that has the unit of a name, nil if there is none, and all that
// lookFor found. The error is Input for an invalid name.
func (r *Registry) find(ctx context.Context, name string) (here *found, all []found, err error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, nil, err
	}
	if all, err = r.lookFor(ctx, name); err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(all, func(f found) bool { return f.name == name }); i >= 0 {
		here = &all[i]
	}
	return here, all, nil
}

// survey returns the directories that exist now, and forgets the readings of all others.
func (r *Registry) survey() []*directory {
	var paths []string
	for _, source := range r.sources {
		inside, _ := unitDirs(source) // List reports an unreadable source
		paths = append(paths, inside...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*directory
	known := r.directories
	r.directories = map[string]*directory{}
	for _, path := range paths {
		if r.directories[path] != nil {
			continue // named twice
		}
		d := known[path]
		if d == nil {
			d = &directory{path: path, gate: newGate()}
		}
		r.directories[path] = d
		all = append(all, d)
	}
	return all
}

// unitDirs returns the source itself if it is meant as a capsule, else the directories
// right below it that are. Hidden directories are left out.
func unitDirs(source string) ([]string, error) {
	if isMarked(source) {
		return []string{source}, nil
	}
	children, err := os.ReadDir(source)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, child := range children {
		path := filepath.Join(source, child.Name())
		if !strings.HasPrefix(child.Name(), ".") && isMarked(path) {
			dirs = append(dirs, path)
		}
	}
	return dirs, nil
}

func isMarked(dir string) bool {
	for _, mark := range marks {
		if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
			return true
		}
	}
	return false
}

// unreadableSources lists the sources that have gone or can't be read.
func (r *Registry) unreadableSources() []Listed {
	var list []Listed
	for _, source := range r.sources {
		if _, err := unitDirs(source); err != nil {
			problem := fault.Wrap(fault.Unavailable, err, "the directory of units %s can't be read", source).
				WithHint("is it still there, and may the server read it?")
			list = append(list, Listed{Name: filepath.Base(source), Origin: source, Problem: problem})
		}
	}
	return list
}
