package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// The files in a directory of changes.
const (
	ChangesName  = "changes.json"
	PatchName    = "changes.patch"
	ContentsName = "files" // a directory: the new contents, under the paths of their files
)

const (
	maxWalked   = 250_000 // files and directories that are looked at
	maxWarnings = 20
)

// Base is a stored project.
type Base struct {
	Dir      string
	Manifest Manifest
}

// CompareOptions say how a copy is held against its base.
type CompareOptions struct {
	Limits  Limits   // of the changed files
	Ignore  []string // patterns of what isn't the project's, beside those of the base's IgnoreFile
	Partial bool     // the run failed or was stopped
}

// Compare reads a copy in which untrusted code worked, and puts what it changed into dest, which
// it makes. Contents are compared: times and sizes lie. Devices, links that lead out and
// whatever is in a .git are left out, with a warning. The error is a TooLarge fault for too many
// or too large changes, an Internal one for a base that is damaged, else the disk's or ctx's.
func Compare(ctx context.Context, base Base, dir, dest string, o CompareOptions) (api.Changes, error) {
	o.Limits = o.Limits.orDefault()
	c := comparison{base: base, dest: dest, opts: o, was: map[string]Entry{}, dropped: map[string]bool{}}
	c.found = api.Changes{Partial: o.Partial, Changes: []api.Change{}}
	for _, e := range base.Manifest.Entries {
		c.was[e.Path] = e
	}
	if err := errors.Join(safefs.RemoveTree(dest), os.MkdirAll(filepath.Join(dest, ContentsName), 0o700)); err != nil {
		return c.found, err
	}
	if err := c.compare(ctx, dir); err != nil {
		return c.found, err
	}
	return c.found, c.write()
}

type comparison struct {
	base           Base
	dest           string
	opts           CompareOptions
	old, now, kept *os.Root         // the base, the copy, the new contents
	ignore         safefs.Patterns  // of the base, and of the options
	was            map[string]Entry // what isn't deleted is taken out
	dropped        map[string]bool  // names of files and directories that are left out
	seen           []*seen
	made           repositories // of what was seen
	walked         int
	tally          tally
	found          api.Changes
	extra          int // warnings that aren't kept
}

// seen is a file or a link of the copy.
type seen struct {
	name string
	size int64 // as it was when it was seen
	now  Entry // read later; zero where the size says enough
}

func (c *comparison) compare(ctx context.Context, dir string) (err error) {
	for _, one := range []struct {
		root **os.Root
		dir  string
	}{{&c.old, c.base.Dir}, {&c.kept, filepath.Join(c.dest, ContentsName)}} {
		if *one.root, err = os.OpenRoot(one.dir); err != nil {
			return err
		}
		defer func() { _ = (*one.root).Close() }() // holds no data
	}
	if c.ignore, err = readIgnore(c.old, c.opts.Ignore); err != nil {
		return damaged(err)
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		c.found.Partial = true
		c.warn("the directory of the project was removed or replaced: nothing can be told of it")
		return nil
	}
	if c.now, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer func() { _ = c.now.Close() }()
	c.tally = tally{limits: c.opts.Limits}
	if err := c.walk(ctx, ".", 0); err != nil {
		return err
	}
	c.seen = eachOnce(c.seen)
	if err := inParallel(ctx, c.seen, c.read); err != nil {
		return err
	}
	return c.changes()
}

const keepOut = "have the agent remove what it made for itself, or name that in .aodignore"

// drop leaves something out. What the base has there counts as unchanged.
func (c *comparison) drop(name, why string) {
	c.dropped[name] = true
	c.warn("%s %s: it isn't part of the changes", fault.Quote(name), why)
}

func (c *comparison) warn(format string, args ...any) {
	if len(c.found.Warnings) == maxWarnings {
		c.extra++
		return
	}
	c.found.Warnings = append(c.found.Warnings, fmt.Sprintf(format, args...))
}

func (c *comparison) changes() error {
	c.made = repositories{}
	for _, s := range c.seen {
		c.made.add(s.name)
	}
	for _, s := range c.seen {
		was, known := c.was[s.name]
		if known && s.now == was {
			delete(c.was, s.name)
			continue
		}
		err := c.store(s.name, was, known)
		if vanished(err) {
			continue
		}
		if err != nil {
			return err
		}
		delete(c.was, s.name)
	}
	for name, was := range c.was {
		if !c.isDropped(name) {
			if err := c.tally.addChange(0); err != nil {
				return err
			}
			c.found.Changes = append(c.found.Changes,
				api.Change{Path: name, Op: api.OpDelete, Mode: was.Mode, Before: was.SHA256})
		}
	}
	slices.SortFunc(c.found.Changes, func(a, b api.Change) int { return cmp.Compare(a.Path, b.Path) })
	if c.extra > 0 {
		c.found.Warnings = append(c.found.Warnings, fmt.Sprintf("and %d more", c.extra))
	}
	return nil
}

func (c *comparison) isDropped(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if c.dropped[name] {
			return true
		}
	}
	return false
}

// store keeps the content of a file of the copy, which is a change unless it turns out to be
// that of the base.
func (c *comparison) store(name string, was Entry, known bool) error {
	now, err := c.keep(name)
	if err != nil || known && now == was {
		return err
	}
	change := api.Change{Path: name, Op: api.OpAdd, Mode: now.Mode, After: now.SHA256, Size: now.Size}
	if known {
		change.Op, change.Before = api.OpModify, was.SHA256
		if was.Mode != now.Mode {
			change.ModeWas = was.Mode
		}
	}
	change.Mind = c.flagRisks(change)
	c.found.Changes = append(c.found.Changes, change)
	return nil
}

// keep copies the content of a file to the new contents.
func (c *comparison) keep(name string) (Entry, error) {
	if err := safefs.MkdirAll(c.kept, path.Dir(name), 0o700); err != nil {
		return Entry{}, err
	}
	dir, base, done, err := above(c.now, name)
	if err != nil {
		return Entry{}, err
	}
	defer done()
	info, err := dir.Lstat(base)
	if err != nil {
		return Entry{}, err
	}
	if gitMode(info.Mode()) == modeLink {
		target, err := dir.Readlink(base)
		if err == nil && linkProblem(name, target) != "" {
			err = fs.ErrNotExist // it was another one when it was seen
		}
		if err != nil {
			return Entry{}, err
		}
		return c.keepFrom(name, modeLink, strings.NewReader(target), int64(len(target)))
	}
	mode := gitMode(info.Mode())
	in, info, err := safefs.OpenRegular(dir, base)
	if errors.Is(err, fs.ErrPermission) {
		if err = c.reopen(name, 0o400); err == nil {
			in, info, err = safefs.OpenRegular(dir, base)
		}
	}
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = in.Close() }() // read only
	return c.keepFrom(name, mode, in, info.Size())
}

// keepFrom stores what a reader gives, at most as many bytes as are counted.
func (c *comparison) keepFrom(name, mode string, in io.Reader, size int64) (Entry, error) {
	if err := c.tally.addChange(size); err != nil {
		return Entry{}, err
	}
	if _, err := safefs.Copy(c.kept, name, io.LimitReader(in, size), 0o600); err != nil {
		return Entry{}, err
	}
	kept, err := describe(c.kept, name)
	kept.Mode = mode
	return kept, err
}

// addChange is add for a file that was changed.
func (t *tally) addChange(size int64) error {
	t.files++
	t.bytes += size
	switch {
	case t.files > t.limits.Files:
		return fault.New(fault.TooLarge, "the run changed more than %d files of its workspace", t.limits.Files).
			WithHint(keepOut)
	case t.bytes > t.limits.Bytes:
		return fault.New(fault.TooLarge, "the files that the run changed in its workspace have more than %s",
			quantity.SizeText(t.limits.Bytes)).
			WithHint(keepOut + "; raise limits.output if that is meant")
	}
	return nil
}

// write writes what was found into the directory of the changes.
func (c *comparison) write() error {
	raw, err := strictjson.Encode(c.found)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dest, ChangesName), append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return writePatch(c.base.Dir, c.dest, c.found.Changes)
}
