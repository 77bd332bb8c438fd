package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/fault"
)

// piece is a part of a multipart body: a text, then the content of a file if there is one.
type piece struct {
	text []byte
	file *InputFile
}

// form returns the submission as a multipart body, and its media type. The body reads its
// files while it is read.
func (s Submission) form() (func() (io.ReadCloser, int64, error), string, error) {
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	document := s.json()
	err := errors.Join(w.WriteField("unit", document.Unit), w.WriteField("input", string(document.Input)))
	if document.Timeout != "" {
		err = errors.Join(err, w.WriteField("timeout", document.Timeout))
	}
	if len(document.Metadata) > 0 {
		raw, _ := json.Marshal(document.Metadata) // texts can't fail
		err = errors.Join(err, w.WriteField("metadata", string(raw)))
	}
	var pieces []piece
	for i, f := range s.Files {
		_, failed := w.CreateFormFile(f.Field, filepath.Base(f.Path))
		err = errors.Join(err, failed)
		pieces = append(pieces, piece{text: bytes.Clone(text.Bytes()), file: &s.Files[i]})
		text.Reset()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, "", fault.Wrap(fault.Internal, err, "the submission can't be written")
	}
	pieces = append(pieces, piece{text: text.Bytes()})
	open := func() (io.ReadCloser, int64, error) { return openPieces(pieces) }
	return open, w.FormDataContentType(), nil
}

// formBody is an opened form.
type formBody struct {
	io.Reader
	files []*os.File
}

// Close closes the files.
func (b *formBody) Close() error {
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func openPieces(pieces []piece) (io.ReadCloser, int64, error) {
	var body formBody
	var readers []io.Reader
	var length int64
	for _, p := range pieces {
		readers = append(readers, bytes.NewReader(p.text))
		length += int64(len(p.text))
		if p.file == nil {
			continue
		}
		file, size, err := openRegular(*p.file)
		if err != nil {
			return nil, 0, errors.Join(err, body.Close())
		}
		body.files = append(body.files, file)
		readers = append(readers, &exactly{file: file, left: size, name: p.file.Path})
		length += size
	}
	body.Reader = io.MultiReader(readers...)
	return &body, length, nil
}

// openRegular opens a regular file. It never waits for the other end of a FIFO.
func openRegular(f InputFile) (*os.File, int64, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fault.Wrap(fault.Input, err, "the file for %q can't be had: %q", f.Field, f.Path)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file, info.Size(), nil
	}
	_ = file.Close() // read only
	return nil, 0, fault.Wrap(fault.Input, err, "the file for %q is not a regular file: %q", f.Field, f.Path)
}

// exactly reads as many bytes of a file as were announced.
type exactly struct {
	file *os.File
	left int64
	name string
}

func (r *exactly) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.file.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && r.left > 0:
		return n, fault.New(fault.Input, "the file %q became shorter while it was sent", r.name).
			WithHint("try again when nothing writes to it")
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed): // closed: the request has ended
		return n, err
	}
	return n, fault.Wrap(fault.Input, err, "the file %q can't be read", r.name)
}
