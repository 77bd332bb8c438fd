package registry

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Limits of an upload if Options sets none.
const (
	DefaultMaxBytes   = 256 << 20 // unpacked
	DefaultMaxEntries = 10_000    // files, directories and links
)

// Options configure a Registry.
type Options struct {
	Home       string        // directory of the versions; made if it is missing
	Sources    []string      // directories: each is a capsule or holds capsules
	Bundled    string        // the directory of units whose names are reserved; "": there are none
	MaxBytes   int64         // of an upload, unpacked; 0: DefaultMaxBytes
	MaxEntries int           // of an upload; 0: DefaultMaxEntries
	Settle     time.Duration // least time between two looks at a directory; 0: look at every call
	Logger     *slog.Logger  // nil: nothing is logged
	// Accept may refuse an upload before it becomes current; nil accepts all.
	Accept func(context.Context, *unit.Unit) error
	// Govern gives each unit that is handed out the policy that holds for it; nil leaves what
	// the unit asks for.
	Govern func(*unit.Unit)
	// Change counts how often that policy was changed, as Policy.Change has it; nil: it never is.
	Change func() int
}

// Registry finds units by name. It is safe for concurrent use. One process at a time
// may use a home.
type Registry struct {
	home    *home
	sources []string
	bundled string // the last of the sources, or ""
	limits  limits
	settle  time.Duration
	logger  *slog.Logger
	accept  func(context.Context, *unit.Unit) error
	govern  func(*unit.Unit)
	change  func() int
	cache   cache
	writing gates // by unit: held while its versions change

	mu          sync.Mutex
	directories map[string]*directory // by absolute path
}

// New makes a registry and starts nothing. The error is an Input fault for a source that is
// no directory, Unavailable for a home that can't be made.
func New(opts Options) (*Registry, error) {
	r := &Registry{
		limits: limits{
			bytes:   cmp.Or(opts.MaxBytes, DefaultMaxBytes),
			entries: cmp.Or(opts.MaxEntries, DefaultMaxEntries), name: maxNameBytes,
		},
		settle:      opts.Settle,
		accept:      opts.Accept,
		govern:      opts.Govern,
		change:      opts.Change,
		logger:      cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		directories: map[string]*directory{},
	}
	if r.change == nil {
		r.change = func() int { return 0 }
	}
	for _, source := range opts.Sources {
		if err := r.addSource(source); err != nil {
			return nil, err
		}
	}
	if opts.Bundled != "" {
		if err := r.addSource(opts.Bundled); err != nil {
			return nil, err
		}
		r.bundled = r.sources[len(r.sources)-1]
	}
	var err error
	r.home, err = openHome(opts.Home)
	return r, err
}

func (r *Registry) addSource(source string) error {
	path, err := sourceDir(source)
	if err == nil {
		r.sources = append(r.sources, path)
	}
	return err
}

func sourceDir(source string) (string, error) {
	path, err := filepath.Abs(source)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "the working directory can't be found")
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return "", fault.Wrap(fault.Input, err, "%s is not a directory of units", fault.Quote(source)).
			WithHint("name a directory that is a capsule, or that holds capsules")
	}
	return path, nil
}

// Get returns the newest good version of a unit. The error is NotFound, with a hint if a
// similar name is known; Input for an invalid name; or the Capsule fault of a directory
// that never had a good version; or Conflict for a name that two units have.
func (r *Registry) Get(ctx context.Context, name string) (*unit.Unit, error) {
	here, found, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	clash := r.clash(name, here)
	switch {
	case clash != nil:
		return nil, clash
	case len(here) > 0:
		return r.serve(ctx, here[0])
	case r.isUpload(name):
		return r.current(name)
	}
	return nil, r.noUnit(name, found)
}

// Version returns a given version of a unit, for a run that was accepted with it, even if
// the unit itself is gone. The error is NotFound if the version was pruned.
func (r *Registry) Version(ctx context.Context, name, version string) (*unit.Unit, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.open(name, version)
}

// Listed is one line of a list of units.
type Listed struct {
	Unit    *unit.Unit // nil: it never had a good version, or another unit has its name
	Name    string
	Origin  string       // the directory; "" for an upload
	Problem *fault.Error // nil: nothing is wrong
}

// List returns all units, sorted by name, broken ones included.
func (r *Registry) List(ctx context.Context) ([]Listed, error) {
	found, err := r.lookFor(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []Listed
	taken := map[string]bool{}
	for _, f := range found {
		if !taken[f.name] {
			taken[f.name] = true
			list = append(list, r.listHolders(ctx, f.name, holders(f.name, found))...)
		}
	}
	for _, name := range r.uploads() {
		if !taken[name] {
			u, err := r.current(name)
			list = append(list, listed(name, "", u, err))
		}
	}
	list = append(list, r.unreadableSources()...)
	slices.SortStableFunc(list, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
	return list, ctx.Err()
}

// listed makes the list's line for a name.
func listed(name, origin string, u *unit.Unit, err error) Listed {
	if err != nil {
		return Listed{Name: name, Origin: origin, Problem: fault.Public(err)}
	}
	return Listed{Unit: u, Name: name, Origin: origin, Problem: u.Problem}
}

// listHolders makes the list's lines for a name that directories have: one, unless units clash.
func (r *Registry) listHolders(ctx context.Context, name string, here []found) (list []Listed) {
	clash := r.clash(name, here)
	if clash == nil {
		u, err := r.serve(ctx, here[0])
		return append(list, listed(name, here[0].path, u, err))
	}
	for _, f := range here {
		list = append(list, Listed{Name: name, Origin: f.path, Problem: clash})
	}
	return list
}

// clash says which units have the same name, if more than one has it: nobody could say which one runs.
func (r *Registry) clash(name string, here []found) *fault.Error {
	var places []string
	for _, f := range here {
		places = append(places, f.path)
	}
	hint := "give one of them another name in its agent.yaml"
	if len(here) > 0 && r.isUpload(name) {
		places = append(places, "an upload")
		hint += ", or remove the upload: aod units rm " + name
	}
	if len(places) < 2 {
		return nil
	}
	return fault.New(fault.Conflict, "more than one unit has the name %s: %s", name, strings.Join(places, " and ")).
		WithHint("%s", hint)
}

// current returns the last good version of a unit.
func (r *Registry) current(name string) (*unit.Unit, error) {
	version, err := r.home.current(name)
	if err != nil {
		return nil, err
	}
	return r.open(name, version)
}

// isUpload reports whether the current version of a unit is an upload.
func (r *Registry) isUpload(name string) bool {
	version, err := r.home.current(name)
	if err != nil {
		return false
	}
	rec, err := r.home.record(name, version)
	return err == nil && rec.Source == unit.FromUpload
}

func (r *Registry) uploads() []string {
	return slices.DeleteFunc(r.home.names(), func(name string) bool { return !r.isUpload(name) })
}

// noUnit is the fault for a name that no unit has.
func (r *Registry) noUnit(name string, found []found) *fault.Error {
	names := r.uploads()
	for _, f := range found {
		names = append(names, f.name)
	}
	return fault.New(fault.NotFound, "there is no unit %s", fault.Quote(name)).
		WithHint("%s", fault.Suggest(name, names, "put its directory where the server looks for units, or upload it"))
}

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

// find returns the directories that have the unit of a name, and all that lookFor found. The error is
// Input for an invalid name.
func (r *Registry) find(ctx context.Context, name string) (here, all []found, err error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, nil, err
	}
	if all, err = r.lookFor(ctx, name); err != nil {
		return nil, nil, err
	}
	return holders(name, all), all, nil
}

// holders returns the directories that have the unit of a name. What is found twice, by a link, is one.
func holders(name string, all []found) (here []found) {
	for _, f := range all {
		if f.name == name && !slices.ContainsFunc(here, func(h found) bool { return SameDir(h.path, f.path) }) {
			here = append(here, f)
		}
	}
	return here
}

// SameDir reports whether two paths lead to one directory.
func SameDir(one, other string) bool {
	a, err := os.Stat(one)
	b, err2 := os.Stat(other)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// survey returns the directories that exist now, and forgets the readings of all others.
func (r *Registry) survey() []*directory {
	var paths []string
	for _, source := range r.sources {
		inside, _ := Dirs(source) // List reports an unreadable source
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

// Dirs returns the source itself if it is meant as a capsule, else the directories
// right below it that are. Hidden directories are left out.
func Dirs(source string) ([]string, error) {
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
		if _, err := Dirs(source); err != nil {
			problem := fault.Wrap(fault.Unavailable, err, "the directory of units %s can't be read", source).
				WithHint("is it still there, and may the server read it?")
			list = append(list, Listed{Name: filepath.Base(source), Origin: source, Problem: problem})
		}
	}
	return list
}
