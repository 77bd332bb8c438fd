package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// A backup may have been changed by anybody since it was written.
const (
	maxBackupName    = 4096 // bytes
	maxBackupHead    = 64 << 10
	maxBackupEntries = 20_000_000
	maxHomeDepth     = 64       // of what a sandbox nests: each level makes the ones below it slower to unpack
	restoreReserve   = 64 << 20 // bytes that stay free on the disk
)

// unarchiver unpacks a backup into a new directory. Links are made last, so that nothing is
// written through one.
type unarchiver struct {
	root   *os.Root
	tar    *tar.Reader
	sums   *sums
	left   int64 // bytes that there is room for
	links  []tar.Header
	report Report
}

// unpack unpacks a file into dir, and finds it to be what was written.
func unpack(ctx context.Context, file, work, dir string) (report Report, err error) {
	f, _, err := safefs.OpenNamed(file)
	if err != nil {
		return report, fault.Wrap(fault.Input, err, "the backup %q can't be opened", file)
	}
	defer func() { _ = f.Close() }() // read only
	zip, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return report, notBackup(err)
	}
	u, err := newUnarchiver(work, dir)
	if err != nil {
		return report, run.StorageFault(err)
	}
	u.tar = tar.NewReader(zip)
	err = u.all(ctx)
	if err == nil {
		err = ended(zip)
	}
	return u.report, errors.Join(err, u.close())
}

func newUnarchiver(work, dir string) (*unarchiver, error) {
	free, err := runtime.FreeBytes(work)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lines, err := newSums(work)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &unarchiver{root: root, sums: lines, left: free - restoreReserve}, nil
}

func (u *unarchiver) close() error { return errors.Join(u.sums.file.Close(), u.root.Close()) }

// ended finds nothing behind an archive, and so that the digest of the compression is right.
func ended(zip io.Reader) error {
	const padding = 1 << 20
	if n, err := io.Copy(io.Discard, io.LimitReader(zip, padding)); err != nil || n == padding {
		return notBackup(err)
	}
	return nil
}

func notBackup(err error) error {
	return fault.Wrap(fault.Input, err, "the file isn't a whole backup").
		WithHint("it was cut off or changed, or `aod backup` didn't write it: use another one")
}

func refusedEntry(name, why string) error {
	return fault.New(fault.Input, "the backup holds %s, %s", fault.Quote(name), why).
		WithHint("`aod backup` doesn't write that: it was changed, use another one")
}

// unpack reads all entries in their order: the head, what is kept, the digests.
func (u *unarchiver) all(ctx context.Context) error {
	if err := u.head(); err != nil {
		return err
	}
	for range maxBackupEntries {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := u.tar.Next()
		if err != nil {
			return notBackup(err) // also at the end: the digests are missing
		}
		if h.Name == sumsName && h.Typeflag == tar.TypeReg {
			return u.end(h)
		}
		if err := u.entry(h); err != nil {
			return err
		}
	}
	return refusedEntry("", "more entries than a server has files")
}

func (u *unarchiver) head() error {
	h, err := u.tar.Next()
	if err != nil || h.Name != headName || h.Size > maxBackupHead {
		return notBackup(err)
	}
	raw, err := io.ReadAll(io.LimitReader(u.tar, maxBackupHead))
	if err != nil {
		return notBackup(err)
	}
	var head header
	if err := json.Unmarshal(raw, &head); err != nil || head.Format < 1 {
		return notBackup(err)
	}
	if head.Format > backupFormat {
		return fault.New(fault.Unsupported, "the backup is of a newer AOD, %s", fault.Quote(head.Version)).
			WithHint("restore it with that one")
	}
	sum := sha256.Sum256(raw)
	u.count(int64(len(raw)))
	return u.sums.add(hex.EncodeToString(sum[:]), headName)
}

func (u *unarchiver) count(bytes int64) {
	u.report.Files, u.report.Bytes = u.report.Files+1, u.report.Bytes+bytes
}

// entry unpacks one. What is said of files belongs to nobody but this process.
func (u *unarchiver) entry(h *tar.Header) error {
	name := strings.TrimSuffix(h.Name, "/")
	if !hasPlace(name) {
		return refusedEntry(name, "which has no place in a data directory")
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(h, name)
	case tar.TypeDir:
		return u.directory(h, name)
	case tar.TypeSymlink:
		if !isSandboxed(name) && !linkStays(name, h.Linkname) {
			return refusedEntry(name, "a link that leads out of its unit or project")
		}
		h.Name = name
		u.links = append(u.links, *h)
		return nil
	}
	return refusedEntry(name, "which is neither a file nor a directory")
}

func (u *unarchiver) directory(h *tar.Header, name string) error {
	err := safefs.MkdirAll(u.root, path.Dir(name), 0o700)
	if err == nil {
		err = safefs.MkdirAll(u.root, name, fs.FileMode(h.Mode)&0o755|0o700) //nolint:gosec // nine bits of it
	}
	if err != nil {
		return u.made(name, err)
	}
	return u.give(h, name)
}

func (u *unarchiver) file(h *tar.Header, name string) error {
	if h.Size > u.left {
		return fault.New(fault.Unavailable, "the disk has no room for the backup: %s holds %d MiB", fault.Quote(name),
			h.Size>>20).
			WithHint("make room, or restore to another disk with --data DIR")
	}
	u.left -= h.Size
	if err := u.made(name, safefs.MkdirAll(u.root, path.Dir(name), 0o700)); err != nil {
		return err
	}
	hash := sha256.New()
	n, err := safefs.Copy(u.root, name, io.TeeReader(u.tar, hash),
		fs.FileMode(h.Mode)&0o755|0o600) //nolint:gosec // nine bits of it
	if err == nil && n != h.Size {
		err = notBackup(nil)
	}
	if err != nil {
		return u.made(name, err)
	}
	u.count(n)
	if err := u.give(h, name); err != nil {
		return err
	}
	return u.sums.add(hex.EncodeToString(hash.Sum(nil)), name)
}

// made explains why something could not be made.
func (u *unarchiver) made(name string, err error) error {
	var onDisk *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return refusedEntry(name, "twice")
	case errors.As(err, &onDisk):
		return run.StorageFault(err)
	}
	return notBackup(err)
}

// end holds the digests against those of what was unpacked, and makes the links.
func (u *unarchiver) end(h *tar.Header) error {
	lines, size, err := u.sums.reread()
	if err != nil {
		return run.StorageFault(err)
	}
	if h.Size > size {
		return notBackup(errors.New("there are digests of files that it doesn't hold"))
	}
	if err := sameLines(u.tar, lines); err != nil {
		return err
	}
	if _, err := u.tar.Next(); !errors.Is(err, io.EOF) {
		return notBackup(err)
	}
	return u.makeLinks()
}

// makeLinks makes the links, none of them through another one.
func (u *unarchiver) makeLinks() error {
	links := map[string]bool{}
	for _, l := range u.links {
		links[l.Name] = true
	}
	for _, l := range u.links {
		dir := path.Dir(l.Name)
		for above := dir; above != "."; above = path.Dir(above) {
			if links[above] {
				return refusedEntry(l.Name, "which lies behind a link")
			}
		}
		err := safefs.MkdirAll(u.root, dir, 0o700)
		if err == nil {
			err = u.root.Symlink(l.Linkname, l.Name)
		}
		if err := u.made(l.Name, err); err != nil {
			return err
		}
		if err := u.give(&l, l.Name); err != nil {
			return err
		}
	}
	return nil
}

// sameLines says which file isn't what it was when the backup was made.
func sameLines(want, got io.Reader) error {
	wanted, found := bufio.NewReader(want), bufio.NewReader(got)
	for {
		w, werr := wanted.ReadString('\n')
		g, gerr := found.ReadString('\n')
		_, name, _ := strings.Cut(g, "  ")
		switch {
		case w != g:
			return fault.New(fault.Input, "the backup is damaged: %s isn't what was backed up",
				fault.Quote(strings.TrimSpace(name))).
				WithHint("use another backup")
		case errors.Is(werr, io.EOF) && errors.Is(gerr, io.EOF):
			return nil
		case werr != nil || gerr != nil:
			return notBackup(errors.Join(werr, gerr))
		}
	}
}

// hasPlace reports whether a home has a place for a name.
func hasPlace(name string) bool {
	return len(name) <= maxBackupName && fs.ValidPath(name) && !strings.ContainsRune(name, 0) && isHomePath(name)
}

// isHomePath reports whether a backup may hold something of that name.
func isHomePath(name string) bool {
	parts := strings.Split(name, "/")
	switch parts[0] {
	case layout.Database:
		return len(parts) == 1
	case layout.Runs:
		return len(parts) > 2 && uuid.Validate(parts[1]) == nil && len(parts[1]) == 36 && layout.IsKept(parts[2])
	case layout.Sessions:
		return len(parts) > 2 && uuid.Validate(parts[1]) == nil && len(parts[1]) == 36 && isSessionPath(parts[2:])
	case layout.Schedules:
		return len(parts) > 1 && len(parts) <= 3 && uuid.Validate(parts[1]) == nil && len(parts[1]) == 36
	case layout.Units:
		return len(parts) > 1 && api.CheckUnitName(parts[1]) == nil
	}
	return false
}

// isSessionPath is isHomePath for what is in the directory of a session.
func isSessionPath(parts []string) bool {
	switch parts[0] {
	case layout.Home, layout.Project:
		return len(parts) <= maxHomeDepth
	case layout.Base:
		return true
	case layout.Manifest:
		return len(parts) == 1
	case layout.Turns:
		return len(parts) <= 2 //nolint:mnd // a file each
	}
	return false
}

// linkStays reports whether a link is one of a unit's version, units/NAME/VERSION/NAME/…, or of a
// project as it was given, runs/ID/base/…, and leads to something there.
func linkStays(name, target string) bool {
	parts := strings.Split(name, "/")
	below := 0
	switch {
	case parts[0] == layout.Units:
		below = 4
	case len(parts) > 2 && parts[2] == layout.Base:
		below = 3
	}
	return below > 0 && len(parts) > below && registry.StaysInside(strings.Join(parts[below:], "/"), target)
}
