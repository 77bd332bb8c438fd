package runtime

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// packer writes files of this host into a tar. All of them are root's there.
type packer struct{ tar *tar.Writer }

// tree packs a directory of this host, with the directories and regular files below it, under
// another name. It leaves out links and special files: they serve this host only.
func (p *packer) tree(source, name string) error {
	return filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, at)
		if err != nil {
			return err
		}
		target := path.Join(name, filepath.ToSlash(rel))
		switch {
		case entry.IsDir():
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return p.dir(target, int64(info.Mode().Perm()))
		case entry.Type().IsRegular():
			return p.file(at, target)
		}
		return nil
	})
}

func (p *packer) dir(name string, mode int64) error {
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Format: tar.FormatPAX})
}

func (p *packer) link(name, to string) error {
	return p.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777,
		Format: tar.FormatPAX,
	})
}

func (p *packer) bytes(name string, content []byte, mode int64) error {
	header := tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: mode,
		Format: tar.FormatPAX,
	}
	if err := p.tar.WriteHeader(&header); err != nil {
		return err
	}
	_, err := p.tar.Write(content)
	return err
}

func (p *packer) file(source, name string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), ModTime: info.ModTime(),
		Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX,
	}
	if err := p.tar.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := io.Copy(p.tar, f); err != nil {
		return fmt.Errorf("pack %q: %w", name, err)
	}
	return nil
}

// parents packs a directory and those above it, except those that were made.
func (p *packer) parents(dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := p.parents(path.Dir(dir), made); err != nil {
		return err
	}
	return p.dir(dir, 0o755)
}
