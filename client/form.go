package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
)

// piece is a part of a multipart body: a text, then the content of a file or a project if there
// is one.
type piece struct {
	text    []byte
	file    *InputFile
	project func(io.Writer) error
}

// field is a text of a form.
type field struct{ name, text string }

// formOpener opens a form anew for every try, with its length, or -1 if that isn't known.
type formOpener func() (io.ReadCloser, int64, error)

// texts are what a form has of a submission beside its files.
func (s Submission) texts() []field {
	document := s.json()
	texts := []field{{"unit", document.Unit}, {"input", string(document.Input)}}
	if document.Session != "" {
		texts = append(texts, field{"session", document.Session})
	}
	if document.Timeout != "" {
		texts = append(texts, field{"timeout", document.Timeout})
	}
	if document.Unattended {
		texts = append(texts, field{"unattended", "true"})
	}
	if document.Context != "" {
		texts = append(texts, field{"context", document.Context})
	}
	if len(document.Metadata) > 0 {
		raw, _ := json.Marshal(document.Metadata) // texts can't fail
		texts = append(texts, field{"metadata", string(raw)})
	}
	if document.Dir != "" {
		texts = append(texts, field{"dir", document.Dir})
	}
	if len(document.Env) > 0 {
		raw, _ := json.Marshal(document.Env) // texts can't fail
		texts = append(texts, field{"env", string(raw)})
	}
	return texts
}

// formOf makes a multipart body of texts, files, and the tar that a project writes, if it isn't nil,
// and returns its media type. The body reads the files while it is read.
func formOf(
	texts []field, files []InputFile, project func(io.Writer) error,
) (open formOpener, contentType string, err error) {
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for _, f := range texts {
		err = errors.Join(err, w.WriteField(f.name, f.text))
	}
	var pieces []piece
	for i, f := range files {
		_, failed := w.CreateFormFile(f.Field, filepath.Base(f.Path))
		err = errors.Join(err, failed)
		pieces = append(pieces, piece{text: bytes.Clone(text.Bytes()), file: &files[i]})
		text.Reset()
	}
	if project != nil {
		_, failed := w.CreateFormFile("workspace", "project.tar")
		err = errors.Join(err, failed)
		pieces = append(pieces, piece{text: bytes.Clone(text.Bytes()), project: project})
		text.Reset()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, "", fault.Wrap(fault.Internal, err, "the form can't be written")
	}
	pieces = append(pieces, piece{text: text.Bytes()})
	return func() (io.ReadCloser, int64, error) { return openPieces(pieces) }, w.FormDataContentType(), nil
}

// formBody is an opened form.
type formBody struct {
	io.Reader
	opened []io.Closer
}

// Close closes the files.
func (b *formBody) Close() error {
	var errs []error
	for _, f := range b.opened {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func openPieces(pieces []piece) (io.ReadCloser, int64, error) {
	var body formBody
	var readers []io.Reader
	var length int64
	unknown := false
	for _, p := range pieces {
		readers = append(readers, bytes.NewReader(p.text))
		length += int64(len(p.text))
		if p.project != nil {
			project := piped(p.project)
			body.opened = append(body.opened, project)
			readers = append(readers, project)
			unknown = true
		}
		if p.file == nil {
			continue
		}
		file, size, err := openRegular(*p.file)
		if err != nil {
			return nil, 0, errors.Join(err, body.Close())
		}
		body.opened = append(body.opened, file)
		readers = append(readers, &exactly{file: file, left: size, name: p.file.Path})
		length += size
	}
	body.Reader = io.MultiReader(readers...)
	if unknown {
		length = -1
	}
	return &body, length, nil
}

// stream reads what a function writes, from the first read on. It ends when it is closed.
func piped(write func(io.Writer) error) *io.PipeReader {
	in, out := io.Pipe()
	go func() { _ = out.CloseWithError(write(out)) }() // never fails
	return in
}

// openRegular opens a regular file. It never waits for the other end of a FIFO.
func openRegular(f InputFile) (*os.File, int64, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fault.Wrap(fault.Input, err, "cannot read the file for %q: %q", f.Field, f.Path)
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
