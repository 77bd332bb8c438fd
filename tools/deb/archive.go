package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"path"
	"time"
)

// archive is a tar.gz of root's files. The first error stays, and bytes returns it.
type archive struct {
	at   time.Time
	out  bytes.Buffer
	gzip *gzip.Writer
	tar  *tar.Writer
	made map[string]bool // directories
	size int             // bytes of all files
	err  error
}

func newArchive(at time.Time) *archive {
	a := &archive{at: at, made: map[string]bool{".": true}}
	a.gzip, a.err = gzip.NewWriterLevel(&a.out, gzip.BestCompression)
	a.tar = tar.NewWriter(a.gzip)
	return a
}

func (a *archive) note(err error) {
	if a.err == nil {
		a.err = err
	}
}

// file adds a file, after the directories that it is in.
func (a *archive) file(name string, mode int64, content []byte) {
	a.directory(path.Dir(name))
	a.head(tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Mode: mode, Size: int64(len(content))})
	_, err := a.tar.Write(content)
	a.note(err)
	a.size += len(content)
}

func (a *archive) directory(name string) {
	if a.made[name] {
		return
	}
	a.made[name] = true
	a.directory(path.Dir(name))
	a.head(tar.Header{Typeflag: tar.TypeDir, Name: "./" + name + "/", Mode: 0o755})
}

func (a *archive) head(h tar.Header) {
	h.ModTime, h.Uname, h.Gname, h.Format = a.at, "root", "root", tar.FormatGNU
	a.note(a.tar.WriteHeader(&h))
}

func (a *archive) bytes() ([]byte, error) {
	a.note(errors.Join(a.tar.Close(), a.gzip.Close()))
	return a.out.Bytes(), a.err
}
