package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sync"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

func isNotDir(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)
}

// CloneOptions say whose the copy is.
type CloneOptions struct {
	UID, GID int  // of its owner; 0: ours
	Open     bool // everybody may change it: the engine has other numbers for users
}

// Clone copies a stored project to a directory that is empty or isn't there, by reflinks where
// the file system has them. The error is that of ctx or of os.
func Clone(ctx context.Context, base, to string, o CloneOptions) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	from, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // holds no data
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	c := cloner{from: from, to: target, own: o}
	if err := c.dir(ctx, "."); err != nil {
		return err
	}
	if err := c.copyFiles(ctx); err != nil {
		return err
	}
	return errors.Join(c.chmod(".", 0o755), c.give("."))
}

type cloner struct {
	from, to *os.Root
	own      CloneOptions
	files    []string
}

// dir makes a directory's directories and links, and notes its files.
func (c *cloner) dir(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return safefs.EachEntry(c.from, dir, func(entry fs.DirEntry) error {
		name := path.Join(dir, entry.Name())
		switch {
		case entry.IsDir():
			if err := c.to.Mkdir(name, 0o700); err != nil {
				return err
			}
			return errors.Join(c.dir(ctx, name), c.chmod(name, 0o755), c.give(name))
		case entry.Type().IsRegular():
			c.files = append(c.files, name)
			return nil
		case entry.Type()&fs.ModeSymlink == 0:
			return fmt.Errorf("the stored project holds %s", safefs.Describe(entry.Type()))
		}
		target, err := c.from.Readlink(name)
		if err != nil {
			return err
		}
		return errors.Join(c.to.Symlink(target, name), c.give(name))
	})
}

// copyFiles copies by as many hands as there are processors.
func (c *cloner) copyFiles(ctx context.Context) error {
	return inParallel(ctx, c.files, func(name string) error {
		in, info, err := safefs.OpenRegular(c.from, name)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }() // read only
		perm := permOf(gitMode(info.Mode()))
		if _, err := safefs.Copy(c.to, name, in, perm); err != nil {
			return err
		}
		if c.own.Open {
			return c.chmod(name, perm)
		}
		return c.give(name)
	})
}

// chmod sets the permissions of a file or directory, which are everybody's with Open.
func (c *cloner) chmod(name string, perm fs.FileMode) error {
	if c.own.Open {
		perm |= 0o66
	}
	return c.to.Chmod(name, perm)
}

// give makes the owner of the copy that of a file.
func (c *cloner) give(name string) error {
	if c.own.UID <= 0 {
		return nil
	}
	return c.to.Lchown(name, c.own.UID, c.own.GID)
}

// inParallel calls do for each item, several at a time, until one fails or ctx ends.
func inParallel[T any](ctx context.Context, items []T, do func(T) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan T)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(items)) {
		workers.Go(func() {
			for item := range next {
				if err := do(item); err != nil {
					stop(err)
				}
			}
		})
	}
feed:
	for _, item := range items {
		select {
		case next <- item:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Verify reads a stored project and holds it against its manifest. The error is a fault.
func (m Manifest) Verify(ctx context.Context, base string) error {
	root, err := os.OpenRoot(base)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	return inParallel(ctx, m.Entries, func(want Entry) error {
		if got, err := describe(root, want.Path); err != nil {
			return damaged(err)
		} else if got != want {
			return damaged(errors.New("a file differs"))
		}
		return nil
	})
}

func damaged(err error) error {
	return fault.Wrap(fault.Internal, err, "the stored project isn't what was accepted").
		WithHint("submit it again; the disk may have failed, or files of the data directory were changed")
}

// describe reads a file or a link below root, through no link on the way.
func describe(root *os.Root, name string) (Entry, error) {
	dir, base, done, err := above(root, name)
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
		return Entry{Path: name, Mode: modeLink, Size: int64(len(target)), SHA256: digestOf(target)}, err
	}
	f, info, err := safefs.OpenRegular(dir, base)
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = f.Close() }() // read only
	size, sum, err := safefs.Digest(f)
	return Entry{Path: name, Mode: gitMode(info.Mode()), Size: size, SHA256: sum}, err
}

// above opens the directory above a name, through no link on the way.
func above(root *os.Root, name string) (dir *os.Root, base string, done func(), err error) {
	parent := path.Dir(name)
	if parent == "." {
		return root, name, func() {}, nil
	}
	if dir, err = safefs.Descend(root, parent); err != nil {
		return nil, "", nil, err
	}
	return dir, path.Base(name), func() { _ = dir.Close() }, nil // holds no data
}
