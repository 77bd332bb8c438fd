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

// arguments are those of calls, with the files that they name.
type arguments struct {
	files runFiles
	dir   string // below which clients name files; "": none
}

// take reads the arguments of a call, and opens the files that they name. In the input that it
// returns they have names of their own.
func (a arguments) take(
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
		content, name, err := a.open(ctx, ref)
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
		return nil, files, fault.New(fault.Input, "cannot read files that the arguments name").WithFindings(findings)
	}
	payload, err = payload.WithNames(refs)
	return payload.JSON(), files, err
}

// add keeps a file, under a name that no other file has.
func (t *taken) add(pointer, name string, content io.ReadCloser) string {
	name = contract.FreeName(name, name, func(name string) bool { return t.names[name] })
	t.names[name] = true
	t.files = append(t.files, File{Pointer: pointer, Name: name, Content: content})
	t.closers = append(t.closers, content)
	return name
}

// open opens what a file field names.
func (a arguments) open(ctx context.Context, ref contract.FileRef) (io.ReadCloser, string, error) {
	switch {
	case strings.HasPrefix(ref.Text, dataScheme):
		kind, name, content, err := parseData(ref.Text)
		if name == "" {
			name = fieldName(ref.Pointer) + httpwire.Extension(kind)
		}
		return io.NopCloser(bytes.NewReader(content)), name, err
	case strings.HasPrefix(ref.Text, "aod:"):
		return a.openResult(ctx, ref.Text)
	case a.dir != "":
		return a.openBelow(ref.Text)
	}
	return nil, "", fault.New(fault.Input, "names a file that this server can't see").
		WithHint("%s; `aod mcp --files DIR` takes paths below DIR", fileHint)
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
func (a arguments) openResult(ctx context.Context, uri string) (io.ReadCloser, string, error) {
	run, file, err := a.files.find(ctx, uri)
	if err != nil {
		return nil, "", err
	}
	content, err := a.files.svc.Open(ctx, run, file)
	return content, path.Base(file.Name), err
}

// openBelow opens a file in the directory that was given, by a path in it or an absolute one.
func (a arguments) openBelow(name string) (io.ReadCloser, string, error) {
	refused := func(err error) error {
		why := "is not a file in the directory of files"
		if errors.Is(err, os.ErrNotExist) {
			why = "is not there"
		}
		return fault.Wrap(fault.Input, err, "the file %s %s", fault.Quote(name), why).
			WithHint("name a regular file below the directory that aod mcp --files gives; links out of it are not " +
				"followed")
	}
	top, err := filepath.Abs(a.dir)
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

// runFiles are the files of runs, by their URIs.
type runFiles struct{ svc Service }

// find finds the file of a run that a URI names.
func (f runFiles) find(ctx context.Context, uri string) (string, api.File, error) {
	run, name, err := parseFileURI(uri)
	if err != nil {
		return "", api.File{}, err
	}
	missing := fault.New(fault.Input, "there is no such file of a run").
		WithHint("take the URI from the link in a result")
	record, err := f.svc.Get(ctx, run)
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

// read reads a file of as many bytes as its record says.
func (f runFiles) read(ctx context.Context, run string, file api.File) ([]byte, error) {
	content, err := f.svc.Open(ctx, run, file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(io.LimitReader(content, file.SizeBytes))
}
