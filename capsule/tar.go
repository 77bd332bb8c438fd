package capsule

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Hides reports whether .dockerignore leaves out what the builder gets all the same.
func (x *Context) Hides() bool {
	return slices.ContainsFunc(x.entries, func(e entry) bool { return e.hidden })
}

// WriteBuild writes the context for a builder, and puts what .dockerignore leaves out where no
// instruction finds it. It is WriteTar where the builder gets nothing of that kind.
func (x *Context) WriteBuild(w io.Writer) error {
	if !x.Hides() {
		return x.WriteTar(w)
	}
	dockerfile, moved, err := x.movedDockerfile()
	if err != nil {
		return err
	}
	return x.rewrite(w, func(h *tar.Header, content io.Reader) io.Reader {
		switch hides := x.hides(h.Name); {
		case h.Name == dockerfileName && moved:
			h.Size, content = int64(len(dockerfile)), strings.NewReader(dockerfile)
		case hides && h.Name != dockerfileName:
			return nil
		case moved:
			h.Name = below + "/" + h.Name
		}
		return content
	})
}

// WriteWith is WriteTar with another text in one of the files.
func (x *Context) WriteWith(w io.Writer, name string, text []byte) error {
	return x.rewrite(w, func(h *tar.Header, content io.Reader) io.Reader {
		if h.Name != name {
			return content
		}
		h.Size = int64(len(text))
		return bytes.NewReader(text)
	})
}

// rewrite writes the entries with the content that a function gives each; nil leaves one out.
func (x *Context) rewrite(w io.Writer, change func(*tar.Header, io.Reader) io.Reader) error {
	out := tar.NewWriter(w)
	err := x.Each(func(h *tar.Header, content io.Reader) error {
		if content = change(h, content); content == nil {
			return nil
		}
		if err := out.WriteHeader(h); err != nil {
			return sendFault(err)
		}
		_, err := io.Copy(out, content)
		return sendFault(err)
	})
	if err != nil {
		return err
	}
	return sendFault(out.Close())
}

// movedDockerfile returns the Dockerfile that reads its context below it, where that is how
// the Dockerfile is hidden.
func (x *Context) movedDockerfile() (text string, moved bool, err error) {
	if !x.hides(dockerfileName) {
		return "", false, nil
	}
	src, err := openSource(x.dir)
	if err != nil {
		return "", false, changed(dockerfileName)
	}
	defer src.close()
	raw, err := src.read(dockerfileName, maxFileBytes)
	if err != nil {
		return "", false, changed(dockerfileName)
	}
	text, moved = readsBelow(string(raw))
	return text, moved, nil
}

func (x *Context) hides(name string) bool {
	return alwaysSent[name] && slices.ContainsFunc(x.entries, func(e entry) bool { return e.hidden && e.name == name })
}

// Each calls do for each entry. The context's own error counts more than what follows of it.
func (x *Context) Each(do func(*tar.Header, io.Reader) error) error {
	reader, writer := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := x.WriteTar(writer)
		wrote <- err
		writer.CloseWithError(err)
	}()
	err := readTar(tar.NewReader(reader), do)
	if err == nil {
		_, _ = io.Copy(io.Discard, reader) // what stands behind the end of a tar
	}
	_ = reader.CloseWithError(err) // it never fails
	if failed := <-wrote; failed != nil && (err == nil || errors.Is(err, failed)) {
		return failed
	}
	return err
}

func readTar(from *tar.Reader, do func(*tar.Header, io.Reader) error) error {
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(header, from)
		}
		if err != nil {
			return err
		}
	}
}

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
