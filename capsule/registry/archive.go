package registry

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxNameBytes bounds names and link targets in an upload.
const maxNameBytes = 1024

// headerBytes bounds the bytes of a tar for one entry, without its content. The padding of
// a short archive to its block size is far less than a hundred of these.
const headerBytes = 4096

// openArchive returns the tar stream in an upload, which may be compressed. Neither the
// stream nor the upload can be longer than the limits need.
func openArchive(ctx context.Context, archive io.Reader, most limits) (io.Reader, error) {
	longest := min(most.bytes, 1<<60) + (int64(most.entries)+100)*headerBytes
	raw := bufio.NewReader(&boundedReader{ctx: ctx, from: archive, left: longest, most: most.bytes})
	head, err := raw.Peek(2)
	if errors.Is(err, io.EOF) {
		return nil, fault.New(fault.BadRequest, "the archive is empty").
			WithHint("send a tar of the capsule's directory, plain or gzip-compressed")
	}
	if err != nil {
		return nil, unreadableArchive(err)
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return raw, nil
	}
	unzipped, err := gzip.NewReader(raw)
	if err != nil {
		return nil, unreadableArchive(err)
	}
	return &boundedReader{ctx: ctx, from: unzipped, left: longest, most: most.bytes}, nil
}

// boundedReader stops reading when its context ends or more has come than is allowed.
type boundedReader struct {
	ctx  context.Context //nolint:containedctx // it lives no longer than its call
	from io.Reader
	left int64
	most int64 // for the message
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fmt.Errorf("read archive: %w", err)
	}
	if b.left <= 0 {
		return 0, tooLarge("the archive is longer than %d bytes of files can make it", b.most)
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// endReader notes whether its source was read to the end. A tar reader stops at the mark of
// the archive's end and doesn't read on.
type endReader struct {
	from    io.Reader
	reached bool
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if n > 0 && errors.Is(err, io.EOF) {
		return n, nil // the next read returns the error again
	}
	e.reached = e.reached || errors.Is(err, io.EOF)
	return n, err
}

// unreadableArchive is the fault for bytes that are no archive. A fault and the end of a
// context stay as they are.
func unreadableArchive(err error) error {
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	message := "it can't be read to its end"
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, gzip.ErrHeader) {
		message = "it isn't a tar"
	}
	return fault.Wrap(fault.BadRequest, err, "the archive can't be read: %s", message).
		WithHint("send a tar of the capsule's directory, plain or gzip-compressed")
}

func refused(name, message, hint string) *fault.Error {
	f := fault.Finding{File: name, Message: message, Hint: hint}
	return fault.New(fault.Input, "the archive holds %s: %s", fault.Quote(name), message).
		WithHint("%s", hint).WithFindings([]fault.Finding{f})
}

func tooLarge(format string, args ...any) *fault.Error {
	return fault.New(fault.TooLarge, format, args...).
		WithHint("send only what the capsule needs: no data, no virtual environment, no version history")
}

func (u *unpacker) tooMany() *fault.Error {
	return tooLarge("the archive holds more than %d entries", u.most.entries)
}

// kindOf names the type of a refused entry, with its article.
func kindOf(typeflag byte) string {
	switch typeflag {
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a named pipe"
	}
	return "something else"
}

// topDirectory returns the one directory that holds everything unpacked, or "" if the
// capsule lies at the archive's root.
func (u *unpacker) topDirectory() string {
	top := ""
	for name, kind := range u.seen {
		first, _, below := strings.Cut(name, "/")
		if (top != "" && first != top) || (!below && kind != tar.TypeDir && kind != implied) {
			return ""
		}
		top = first
	}
	return top
}

// insideOf returns a check that a link leads to something below a directory.
func insideOf(top string, most limits) func(link) error {
	return func(l link) error {
		name := l.name
		if top != "" {
			name = strings.TrimPrefix(name, top+"/")
		}
		if len(l.target) > most.name || !StaysInside(name, l.target) {
			return refused(l.name, "it is a link that leads out of the capsule",
				"let it point to a file of the capsule, by a relative path")
		}
		return nil
	}
}

// StaysInside reports whether a link stays below the directory that its name is relative
// to. Steps up are allowed at the start only: behind another link, the names alone don't
// say where a step up leads.
func StaysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			down = true
		case down || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}
