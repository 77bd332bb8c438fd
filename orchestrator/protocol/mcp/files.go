package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// maxFiles is how many files one call may bring.
const maxFiles = 1000

// taken are the files of a call, open until its run has them.
type taken struct {
	files   []File
	closers []io.Closer
	names   map[string]bool
}

func (t *taken) close() {
	for _, c := range t.closers {
		_ = c.Close() // read only
	}
}

// take reads the arguments of a call, and opens the files that they name. In the input that it
// returns they have names of their own.
func (s *Server) take(
	ctx context.Context, input *contract.Schema, arguments json.RawMessage,
) (json.RawMessage, *taken, error) {
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	files := &taken{names: map[string]bool{}}
	payload, err := contract.Decode(arguments, maxRequest)
	if err != nil {
		return nil, files, err
	}
	refs := input.FileRefs(payload)
	if len(refs) == 0 {
		return payload.JSON(), files, nil
	}
	if len(refs) > maxFiles {
		return nil, files, fault.New(fault.TooLarge, "the arguments name more than %d files", maxFiles)
	}
	var findings []fault.Finding
	for i, ref := range refs {
		content, name, err := s.open(ctx, ref)
		if err != nil {
			if ctx.Err() != nil {
				return nil, files, context.Cause(ctx)
			}
			public := fault.Public(err)
			findings = append(findings, fault.Finding{Pointer: ref.Pointer, Message: public.Msg, Hint: public.Hint})
			continue
		}
		refs[i].Name, refs[i].Err = files.add(ref.Pointer, name, content), nil
	}
	if len(findings) > 0 {
		return nil, files, fault.New(fault.Input, "the arguments name files that can't be had").WithFindings(findings)
	}
	payload, err = payload.WithNames(refs)
	return payload.JSON(), files, err
}

// add keeps a file, under a name that no other file has.
func (t *taken) add(pointer, name string, content io.ReadCloser) string {
	base := name
	for n := 2; t.names[name]; n++ {
		name = path.Join(strconv.Itoa(n), base)
	}
	t.names[name] = true
	t.files = append(t.files, File{Pointer: pointer, Name: name, Content: content})
	t.closers = append(t.closers, content)
	return name
}

// open opens what a file field names.
func (s *Server) open(ctx context.Context, ref contract.FileRef) (io.ReadCloser, string, error) {
	switch {
	case strings.HasPrefix(ref.Text, dataScheme):
		kind, name, content, err := parseData(ref.Text)
		if name == "" {
			name = fieldName(ref.Pointer) + httpwire.Extension(kind)
		}
		return io.NopCloser(bytes.NewReader(content)), name, err
	case strings.HasPrefix(ref.Text, "aod:"):
		return s.openResult(ctx, ref.Text)
	case s.opts.Files != "":
		return s.openBelow(ref.Text)
	}
	return nil, "", fault.New(fault.Input, "names a file that this server can't see").WithHint("%s", fileHint)
}

// fieldName is a name for a file that has none: that of its field.
func fieldName(pointer string) string {
	parts := strings.Split(pointer, "/")
	for _, part := range slices.Backward(parts) {
		if _, err := strconv.Atoi(part); err != nil && api.CheckFileName(part) == nil {
			return part
		}
	}
	return "file"
}

// openResult opens a file of an earlier run.
func (s *Server) openResult(ctx context.Context, uri string) (io.ReadCloser, string, error) {
	run, file, err := s.findFile(ctx, uri)
	if err != nil {
		return nil, "", err
	}
	content, err := s.svc.Open(ctx, run, file)
	return content, path.Base(file.Name), err
}

// findFile finds the file of a run that a URI names.
func (s *Server) findFile(ctx context.Context, uri string) (string, api.File, error) {
	run, name, err := parseFileURI(uri)
	if err != nil {
		return "", api.File{}, err
	}
	missing := fault.New(fault.Input, "there is no such file of a run").
		WithHint("take the URI from the link in a result")
	record, err := s.svc.Get(ctx, run)
	if fault.Is(err, fault.NotFound) {
		return "", api.File{}, missing
	}
	if err != nil {
		return "", api.File{}, err
	}
	for _, file := range record.Files {
		if file.Name == name {
			return run, file, nil
		}
	}
	return "", api.File{}, missing
}

// openBelow opens a file in the directory that was given, by a path in it or an absolute one.
func (s *Server) openBelow(name string) (io.ReadCloser, string, error) {
	refused := func(err error) error {
		why := "is not a file in the directory of files"
		if errors.Is(err, os.ErrNotExist) {
			why = "is not there"
		}
		return fault.Wrap(fault.Input, err, "the file %s %s", fault.Quote(name), why).
			WithHint("name a regular file below the directory that aod mcp --files gives; links out of it are not " +
				"followed")
	}
	top, err := filepath.Abs(s.opts.Files)
	if err != nil {
		return nil, "", refused(err)
	}
	rel := strings.TrimPrefix(name, "file://")
	if filepath.IsAbs(rel) {
		if rel, err = filepath.Rel(top, rel); err != nil {
			return nil, "", refused(err)
		}
	}
	if !filepath.IsLocal(rel) {
		return nil, "", refused(nil)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", refused(err)
	}
	defer root.Close()
	content, _, err := safefs.OpenInside(root, rel)
	if err != nil {
		return nil, "", refused(err)
	}
	return content, filepath.Base(rel), nil
}
