package capsule

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// writeEntries writes every entry as a tar stream without its end.
func (x *Context) writeEntries(src source, w io.Writer) error {
	t := tar.NewWriter(w)
	for _, e := range x.entries {
		if err := writeEntry(t, src, e); err != nil {
			return err
		}
	}
	return sendFault(t.Flush())
}

func writeEntry(t *tar.Writer, src source, e entry) error {
	if err := t.WriteHeader(header(e)); err != nil {
		return sendFault(err)
	}
	if !e.mode.IsRegular() {
		return nil
	}
	f, err := src.open(e.name)
	if errors.Is(err, fs.ErrNotExist) {
		return changed(fault.Quote(e.name))
	}
	if err != nil {
		return badContext(e.name, err.Error(), "make it readable, or leave it out with .dockerignore")
	}
	defer f.Close()
	return copyFile(t, f, e)
}

// copyFile copies exactly as many bytes as the header promised.
func copyFile(t *tar.Writer, f fs.File, e entry) error {
	n, err := io.Copy(t, io.LimitReader(f, e.size))
	if err != nil {
		return sendFault(err)
	}
	var more [1]byte
	if extra, _ := f.Read(more[:]); n != e.size || extra > 0 {
		return changed(fault.Quote(e.name))
	}
	return nil
}

// header holds what the digest is over and nothing else: no times, no owners, and of
// the mode only whether the file is executable.
func header(e entry) *tar.Header {
	h := &tar.Header{Name: e.name, ModTime: time.Unix(0, 0)}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, e.name+"/", 0o755
	case e.mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
	default:
		h.Typeflag, h.Size, h.Mode = tar.TypeReg, e.size, 0o644
		if e.mode&0o111 != 0 {
			h.Mode = 0o755
		}
	}
	return h
}

// sendFault passes a failure of the receiving side on.
func sendFault(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Internal, err, "the build context could not be sent")
}
