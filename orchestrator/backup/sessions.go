package backup

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// stagedName is the copy of a file that a sandbox may change.
const stagedName = "staged"

// addSessions adds what the open sessions of a snapshot go on with.
func (a *archiver) addSessions(ctx context.Context, s *store.Sessions) error {
	for filter := (store.SessionFilter{Open: true}); ; {
		rows, err := s.List(ctx, filter)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if err := a.session(ctx, layout.Sessions+"/"+row.ID); err != nil {
				return err
			}
			filter.After = s.Behind(row)
		}
	}
}

func (a *archiver) session(ctx context.Context, dir string) error {
	for _, own := range []string{layout.Base, layout.Manifest, layout.Turns} {
		if err := a.tree(ctx, dir+"/"+own); err != nil {
			return err
		}
	}
	for _, kept := range []string{layout.Home, layout.Project} {
		if err := a.kept(ctx, dir+"/"+kept); err != nil {
			return err
		}
	}
	return nil
}

// kept adds a directory that the sandboxes of a session may change.
func (a *archiver) kept(ctx context.Context, dir string) error {
	return fs.WalkDir(a.root.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !hasPlace(name) {
			return skip(entry)
		}
		if err == nil {
			err = a.sandboxed(name, entry)
		}
		if errors.Is(err, fs.ErrPermission) {
			return skip(entry)
		}
		return safefs.IgnoreMissing(err)
	})
}

// skip leaves out what a restore would refuse, or what the sandbox closed even to us.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// sandboxed adds what a sandbox may change meanwhile, and whose it is.
func (a *archiver) sandboxed(name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	a.uid, a.gid = owner(info)
	defer func() { a.uid, a.gid = 0, 0 }()
	if !entry.Type().IsRegular() {
		return a.entry(name, entry)
	}
	err = a.staged(name)
	var other *safefs.Irregular
	if errors.As(err, &other) {
		return nil
	}
	return err
}

// staged adds a file as it was when it was copied: it may become shorter at any moment.
func (a *archiver) staged(name string) (err error) {
	f, info, err := safefs.OpenRegular(a.root, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	staged, err := os.Create(filepath.Join(filepath.Dir(a.out.Name()), stagedName))
	if err != nil {
		return writeFault(err)
	}
	defer func() { err = errors.Join(err, staged.Close()) }()
	size, err := io.Copy(staged, io.LimitReader(f, info.Size()))
	if err == nil {
		_, err = staged.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	return a.content(staged, name, size, info.Mode().Perm())
}

// isSandboxed reports whether a name is of what the sandbox of a session owns. Its home is open
// to it all the same.
func isSandboxed(name string) bool {
	parts := strings.SplitN(name, "/", 4)
	if len(parts) < 3 || parts[0] != layout.Sessions { //nolint:mnd // sessions/ID/home
		return false
	}
	return parts[2] == layout.Project || parts[2] == layout.Home && len(parts) > 3
}

// give makes a restored file its sandbox's, where that has a user of its own.
func (u *unarchiver) give(h *tar.Header, name string) error {
	if os.Geteuid() != 0 || !isSandboxed(name) || h.Uid <= 0 || h.Gid < 0 {
		return nil
	}
	if err := u.root.Lchown(name, h.Uid, h.Gid); err != nil {
		return fault.Wrap(fault.Input, err, "the backup names an owner of %s who can't be", fault.Quote(name))
	}
	return nil
}
