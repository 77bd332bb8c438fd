package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// walk notes the files and links below a directory of the copy.
func (c *comparison) walk(ctx context.Context, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	err := c.reopen(dir, 0o500)
	if err == nil {
		err = c.each(ctx, dir, depth)
	}
	if dir != "." && vanished(err) {
		return nil
	}
	return err
}

func (c *comparison) each(ctx context.Context, dir string, depth int) error {
	in, _, done, err := above(c.now, path.Join(dir, "x")) // the directory itself
	if err != nil {
		return err
	}
	defer done()
	return safefs.EachEntry(in, ".", func(entry fs.DirEntry) error {
		if c.walked++; c.walked > maxWalked {
			return fault.New(fault.TooLarge, "the workspace holds more than %d files and directories", maxWalked).
				WithHint(keepOut)
		}
		return c.visit(ctx, path.Join(dir, entry.Name()), entry, depth)
	})
}

// reopen gives the owner of a file or directory the permissions to read it, where it has closed
// that to itself. Those of others stay: the program may go on.
func (c *comparison) reopen(name string, need fs.FileMode) error {
	dir, base, done, err := above(c.now, name)
	if err != nil {
		return err
	}
	defer done()
	info, err := dir.Lstat(base)
	if err != nil || info.Mode()&need == need || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return dir.Chmod(base, info.Mode().Perm()|need|0o200)
}

// vanished reports whether something was removed or replaced after it had been seen: the program
// of a session may still work.
func vanished(err error) bool {
	var other *safefs.Irregular
	return errors.Is(err, fs.ErrNotExist) || isNotDir(err) || errors.Is(err, syscall.EINVAL) || errors.As(err, &other)
}

func (c *comparison) visit(ctx context.Context, name string, entry fs.DirEntry, depth int) error {
	if inGit(name) {
		if !c.base.Manifest.Git || name != gitDir {
			c.drop(name, "is git's own")
		}
		return nil
	}
	if why := nameProblem(name); why != "" || ours(name) {
		c.drop(name, cmp.Or(why, "is a name of AOD's own"))
		return nil
	}
	out, err := leftBy(c.ignore, name)
	if _, was := c.was[name]; err != nil || out && !was && !c.ignore.MayHoldExceptions(name) {
		return err
	}
	if entry.IsDir() {
		return c.walk(ctx, name, depth+1)
	}
	info, err := entry.Info()
	if vanished(err) || out {
		return nil
	}
	if err != nil {
		return err
	}
	if why := c.unfit(name, info.Mode()); why != "" {
		c.drop(name, why)
		return nil
	}
	c.seen = append(c.seen, &seen{name: name, size: info.Size()})
	return nil
}

// unfit says why an entry of the copy can't be part of a project; "" if it can.
func (c *comparison) unfit(name string, mode fs.FileMode) string {
	switch gitMode(mode) {
	case "":
		return "is " + safefs.Describe(mode)
	case modeLink:
		target, err := c.now.Readlink(name)
		if err != nil {
			return "is a link that can't be read"
		}
		return linkProblem(name, target)
	}
	return ""
}

// eachOnce leaves out what was seen twice, or as a file and as a directory: that was moved about
// meanwhile.
func eachOnce(all []*seen) []*seen {
	const once, taken = 1, 2
	known := make(map[string]int, len(all))
	for _, s := range all {
		known[s.name] = once
	}
	return slices.DeleteFunc(all, func(s *seen) bool {
		for dir := path.Dir(s.name); dir != "."; dir = path.Dir(dir) {
			if known[dir] > 0 {
				return true
			}
		}
		again := known[s.name] == taken
		known[s.name] = taken
		return again
	})
}

// read reads a file, unless it is new or has another size than in the base.
func (c *comparison) read(s *seen) (err error) {
	was, known := c.was[s.name]
	if !known || was.Size != s.size && was.Mode != modeLink {
		return nil
	}
	if s.now, err = describe(c.now, s.name); errors.Is(err, fs.ErrPermission) {
		if err = c.reopen(s.name, 0o400); err == nil {
			s.now, err = describe(c.now, s.name)
			s.now.Mode = was.Mode // nobody could execute it either
		}
	}
	if vanished(err) { // store looks again
		s.now, err = Entry{}, nil
	}
	return err
}
