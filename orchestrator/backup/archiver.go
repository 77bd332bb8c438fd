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
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// archiver writes a backup.
type archiver struct {
	root   *os.Root // of the home
	out    *os.File
	zip    *gzip.Writer
	tar    *tar.Writer
	sums   *sums
	report Report

	uid, gid int // of what is added
}

func newArchiver(home, work string) (*archiver, error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(filepath.Join(work, archiveName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	lines, err := newSums(work)
	if err != nil {
		return nil, errors.Join(err, root.Close(), out.Close())
	}
	zip, _ := gzip.NewWriterLevel(out, gzip.BestSpeed) // a level that exists
	return &archiver{root: root, out: out, zip: zip, tar: tar.NewWriter(zip), sums: lines}, nil
}

// close ends the archive, if it is whole, with the digests and writes it to the disk.
func (a *archiver) close(whole bool) error {
	var err error
	if whole {
		err = a.end()
	}
	return errors.Join(err, a.sums.file.Close(), a.out.Close(), a.root.Close())
}

func (a *archiver) end() error {
	lines, size, err := a.sums.reread()
	if err != nil {
		return err
	}
	if err := a.copyIn(lines, sumsName, size, 0o600); err != nil {
		return err
	}
	return errors.Join(a.tar.Close(), a.zip.Close(), a.out.Sync())
}

func (a *archiver) head(head header) error {
	raw, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return a.content(strings.NewReader(string(raw)+"\n"), headName, int64(len(raw)+1), 0o600)
}

// addSnapshot adds the copy of the store.
func (a *archiver) addSnapshot(work string) error {
	f, info, err := safefs.OpenNamed(filepath.Join(work, layout.Database))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	return a.content(f, layout.Database, info.Size(), 0o600)
}

// unit adds the versions of a unit, and last which one is current.
func (a *archiver) unit(ctx context.Context, dir string) error {
	added := map[string]bool{}
	add := func() error {
		entries, err := fs.ReadDir(a.root.FS(), dir)
		for _, entry := range entries {
			if entry.IsDir() && !added[entry.Name()] {
				added[entry.Name()] = true
				err = errors.Join(err, a.tree(ctx, dir+"/"+entry.Name()))
			}
		}
		return safefs.IgnoreMissing(err)
	}
	if err := add(); err != nil {
		return err
	}
	current, err := a.root.ReadFile(dir + "/current")
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	if err := add(); err != nil { // what became current since
		return err
	}
	return a.content(strings.NewReader(string(current)), dir+"/current", int64(len(current)), 0o600)
}

// tree adds a file or a directory of the home. What is removed meanwhile is left out.
func (a *archiver) tree(ctx context.Context, name string) error {
	return fs.WalkDir(a.root.FS(), name, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !isTemp(path.Base(name)) {
			err = a.entry(name, entry)
		}
		return safefs.IgnoreMissing(err)
	})
}

func (a *archiver) entry(name string, entry fs.DirEntry) error {
	switch entry.Type() {
	case 0:
		return a.file(name)
	case fs.ModeDir:
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return a.tar.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(info.Mode().Perm()),
			Uid: a.uid, Gid: a.gid,
		})
	case fs.ModeSymlink:
		target, err := a.root.Readlink(name)
		if err != nil {
			return err
		}
		return a.tar.WriteHeader(&tar.Header{
			Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Uid: a.uid,
			Gid: a.gid,
		})
	}
	return nil // nothing else is kept of a run or a unit
}

func (a *archiver) file(name string) error {
	f, info, err := safefs.OpenRegular(a.root, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	return a.content(f, name, info.Size(), info.Mode().Perm())
}

// content adds a file and its digest. A log grows meanwhile: it is taken as long as it was.
func (a *archiver) content(in io.Reader, name string, size int64, mode fs.FileMode) error {
	hash := sha256.New()
	if err := a.copyIn(io.TeeReader(io.LimitReader(in, size), hash), name, size, mode); err != nil {
		return err
	}
	a.report.Files, a.report.Bytes = a.report.Files+1, a.report.Bytes+size
	return a.sums.add(hex.EncodeToString(hash.Sum(nil)), name)
}

func (a *archiver) copyIn(in io.Reader, name string, size int64, mode fs.FileMode) error {
	err := a.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(mode), ModTime: time.Now(), Uid: a.uid, Gid: a.gid,
	})
	if err != nil {
		return err
	}
	n, err := io.Copy(a.tar, in)
	if err == nil && n < size {
		return fault.New(fault.Unavailable, "a file became shorter while it was read").WithHint("try again")
	}
	return err
}

func isTemp(name string) bool { return strings.HasPrefix(name, safefs.TempPrefix) }

// sums are the lines of SHA256SUMS, kept in a file: there may be millions.
type sums struct {
	file *os.File
	w    *bufio.Writer
}

func newSums(dir string) (*sums, error) {
	f, err := os.OpenFile(filepath.Join(dir, sumsName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &sums{file: f, w: bufio.NewWriter(f)}, nil
}

// escapes are those of sha256sum, whose line begins with a backslash then.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

func (s *sums) add(digest, name string) error {
	escaped := escapes.Replace(name)
	if escaped != name {
		digest = `\` + digest
	}
	_, err := s.w.WriteString(digest + "  " + escaped + "\n")
	return err
}

// reread returns the lines from the first one on.
func (s *sums) reread() (io.Reader, int64, error) {
	if err := s.w.Flush(); err != nil {
		return nil, 0, err
	}
	size, err := s.file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = s.file.Seek(0, io.SeekStart)
	}
	return s.file, size, err
}
