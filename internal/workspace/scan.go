package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// IgnoreFile is the file in a project's top that says what isn't copied, in the form of a
// .dockerignore.
const IgnoreFile = ".aodignore"

const maxIgnoreBytes = 256 << 10

// Options say what of a project is taken.
type Options struct {
	Git    bool     // its .git comes along, without hooks, remotes and settings
	Limits Limits   // of the project
	Ignore []string // patterns of what is left out, beside those of IgnoreFile
}

// Project is what of a directory of the user's is copied.
type Project struct {
	dir     string
	names   []string // by path; of files and links
	config  []byte   // of the .git that comes along; nil: none does
	limits  Limits
	skipped []string
}

// Skipped returns what was left out that a user could expect: repositories in the repository.
func (p *Project) Skipped() []string { return p.skipped }

// Scan lists what belongs to the project in a directory: in a work tree of git what git tracks
// or doesn't ignore, else everything, in both without what the patterns leave out. The error is
// a fault that names what can't be taken: a link that leads out, a device, too many files.
func Scan(ctx context.Context, dir string, o Options) (*Project, error) {
	dir, err := checkedDir(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	defer func() { _ = root.Close() }() // holds no data
	s := scanner{root: root, tally: tally{limits: o.Limits.orDefault()}}
	if s.ignore, err = readIgnore(root, o.Ignore); err != nil {
		return nil, err
	}
	p := &Project{dir: dir, limits: s.tally.limits}
	if err := s.list(ctx, dir); err != nil {
		return nil, err
	}
	if o.Git {
		if p.config, err = s.addGit(ctx, dir); err != nil {
			return nil, err
		}
	}
	slices.Sort(s.names)
	p.names, p.skipped = slices.Compact(s.names), s.skipped
	return p, nil
}

// checkedDir returns the real path of a directory that may be a project.
func checkedDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", unreadable(dir, err)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() { //nolint:gosec // the user's own directory
		return "", fault.Wrap(fault.Input, err, "%s isn't a directory", fault.Quote(dir)).
			WithHint("name the project's directory")
	}
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if abs == "/" || home != "" && within(home, abs) {
		return "", fault.New(fault.Input, "%s can't be a project: it is the root, or holds your home directory",
			fault.Quote(dir)).
			WithHint("name the directory of one project")
	}
	return abs, nil
}

// within reports whether a path is a directory or below it.
func within(name, dir string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

func unreadable(dir string, err error) error {
	return fault.Wrap(fault.Input, err, "%s can't be read: %s", fault.Quote(dir), safefs.Reason(err))
}

// readIgnore returns the patterns of a project, and others.
func readIgnore(root *os.Root, more []string) (safefs.Patterns, error) {
	raw, err := safefs.ReadRegular(root, IgnoreFile, maxIgnoreBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return safefs.Patterns{}, fault.Wrap(fault.Input, err, "%s can't be read", IgnoreFile).
			WithHint("make it a small file of patterns")
	}
	patterns, err := safefs.ParsePatterns([]byte(string(raw) + "\n" + strings.Join(more, "\n")))
	if err != nil {
		return patterns, fault.New(fault.Input, "%s: %s", IgnoreFile, fault.Clip(err.Error(), fault.MaxQuoted)).
			WithHint("write one short pattern a line, as in a .dockerignore")
	}
	return patterns, nil
}

// scanner gathers the names of a project.
type scanner struct {
	root    *os.Root
	ignore  safefs.Patterns
	tally   tally
	names   []string
	skipped []string
}

// list takes what git names in a work tree, else everything.
func (s *scanner) list(ctx context.Context, dir string) error {
	if !inWorkTree(dir) {
		return s.walk(ctx, ".", safefs.Verdict{}, 0)
	}
	names, err := gitFiles(ctx, dir, s.tally.limits)
	if err != nil {
		return err
	}
	before := ""
	for _, name := range names {
		if name == before { // a conflict has three of one name
			continue
		}
		before = name
		if err := s.tracked(name); err != nil {
			return err
		}
	}
	if len(s.names) == 0 && len(names) == 0 && !isEmpty(s.root) {
		return fault.New(fault.Input, "git ignores everything in the directory: nothing would be copied").
			WithHint("is it ignored by a repository around it? Make it one of its own with git init")
	}
	return nil
}

// tracked takes a name that git told of.
func (s *scanner) tracked(name string) error {
	if strings.HasSuffix(name, "/") {
		s.skipped = append(s.skipped, name)
		return nil
	}
	out, err := leftBy(s.ignore, name)
	if out || err != nil {
		return err
	}
	info, err := s.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was deleted, and the index doesn't know
		return nil
	case err == nil && info.IsDir():
		s.skipped = append(s.skipped, name+"/")
		return nil
	}
	return s.take(name, info, err)
}

// walk takes what is in a directory that isn't git's.
func (s *scanner) walk(ctx context.Context, dir string, parent safefs.Verdict, depth int) error {
	if depth > maxDepth {
		return refused(dir, tooDeep)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return safefs.EachEntry(s.root, dir, func(entry fs.DirEntry) error {
		name := path.Join(dir, entry.Name())
		out, own, err := s.ignore.Match(name, parent)
		if err != nil || inGit(name) || ours(name) {
			return err
		}
		if entry.IsDir() {
			if out && !s.ignore.MayHoldExceptions(name) {
				return nil
			}
			return s.walk(ctx, name, own, depth+1)
		}
		if out {
			return nil
		}
		info, err := entry.Info()
		return s.take(name, info, err)
	})
}

// take adds a file or a link to the project.
func (s *scanner) take(name string, info fs.FileInfo, err error) error {
	if err != nil {
		return refused(name, "can't be read: "+safefs.Reason(err))
	}
	if inGit(name) || ours(name) {
		return nil
	}
	if why := nameProblem(name); why != "" {
		return refused(name, why)
	}
	size := info.Size()
	switch gitMode(info.Mode()) {
	case "":
		return refused(name, "is "+safefs.Describe(info.Mode())+", which isn't copied")
	case modeLink:
		target, err := s.root.Readlink(name)
		if err != nil {
			return refused(name, "can't be read: "+safefs.Reason(err))
		}
		if why := linkProblem(name, target); why != "" {
			return refused(name, why)
		}
		size = int64(len(target))
	}
	s.names = append(s.names, name)
	return s.tally.add(size)
}

func isEmpty(root *os.Root) bool {
	return !errors.Is(safefs.EachEntry(root, ".", func(entry fs.DirEntry) error {
		if !inGit(entry.Name()) {
			return fs.SkipAll
		}
		return nil
	}), fs.SkipAll)
}
