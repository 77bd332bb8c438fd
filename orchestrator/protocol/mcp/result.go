package mcp

import (
	"context"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	maxImage    = 512 << 10
	maxText     = 32 << 10
	maxIncluded = 4 << 20 // of the files in one result, all together
	maxLinks    = 1000    // files that one result links to
)

// results are what calls answer with.
type results struct {
	svc    Service
	files  runFiles
	out    string // a directory for the files of results; "": they stay with their runs
	url    string // of the server that has the files of runs; "": none
	logger *slog.Logger
}

// of is what a call answers with when its run has ended.
func (r results) of(ctx context.Context, record api.Record) *sdk.CallToolResult {
	if record.Outcome != api.Success {
		return problemOf(record).result()
	}
	result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(record.Output)}}}
	if strings.HasPrefix(string(record.Output), "{") {
		result.StructuredContent = record.Output
	}
	setRun(result, record.ID)
	included := int64(0)
	for i, file := range record.Files {
		if i == maxLinks {
			break
		}
		uri := r.deliver(ctx, record.ID, file)
		size := file.SizeBytes
		result.Content = append(result.Content, &sdk.ResourceLink{
			URI: uri, Name: file.Name, MIMEType: httpwire.TypeOfFile(file.Name), Size: &size,
		})
		if most := includedUpTo(file.Name); size > most || included+size > maxIncluded {
			continue
		}
		if content := r.include(ctx, record.ID, file, uri); content != nil {
			included += size
			result.Content = append(result.Content, content)
		}
	}
	return result
}

// setRun names the run of a result.
func setRun(result *sdk.CallToolResult, id string) {
	if id != "" {
		result.Meta = sdk.Meta{"aod/run": id}
	}
}

// includedUpTo is how large a file may be that stands in a result itself; -1: none of its kind.
func includedUpTo(name string) int64 {
	switch kind := httpwire.TypeOfFile(name); {
	case isImage(kind):
		return maxImage
	case isText(kind):
		return maxText
	}
	return -1
}

// include reads a small file for a result. It is nil where that can't be done: the link remains.
func (r results) include(ctx context.Context, run string, file api.File, uri string) sdk.Content {
	raw, err := r.files.read(ctx, run, file)
	if err != nil {
		r.logger.WarnContext(ctx, "file not included", "run", run, fault.LogAttr(err))
		return nil
	}
	kind := httpwire.TypeOfFile(file.Name)
	if isImage(kind) {
		return &sdk.ImageContent{Data: raw, MIMEType: kind}
	}
	if !utf8.Valid(raw) {
		return nil
	}
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: kind, Text: string(raw)}}
}

// deliver puts a file into the directory for results, if there is one, and returns its URI.
func (r results) deliver(ctx context.Context, run string, file api.File) string {
	uri := fileURI(run, file.Name)
	if r.out == "" {
		return uri
	}
	if err := r.copyOut(ctx, run, file); err != nil {
		r.logger.WarnContext(ctx, "file not delivered", "run", run, fault.LogAttr(err))
		return uri
	}
	at, err := filepath.Abs(filepath.Join(r.out, run, filepath.FromSlash(file.Name)))
	if err != nil {
		return uri
	}
	return pathURI(at)
}

func (r results) copyOut(ctx context.Context, run string, file api.File) error {
	if err := api.CheckFileName(file.Name); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.out)
	if err != nil {
		return err
	}
	defer root.Close()
	name := path.Join(run, file.Name)
	if _, err := root.Stat(name); err == nil {
		return nil // an answer that was asked for again
	}
	if err := safefs.MkdirAll(root, path.Dir(name), 0o755); err != nil {
		return err
	}
	content, err := r.svc.Open(ctx, run, file)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = safefs.Copy(root, name, content, 0o644)
	return err
}

// maxResource is how large a file may be that is read as a resource.
const maxResource = 8 << 20

// readResource reads a file of a run.
func (r results) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	run, file, err := r.files.find(ctx, r.inRun(req.Params.URI))
	if err != nil {
		return nil, err
	}
	if file.SizeBytes > maxResource {
		return nil, r.tooLarge(run, file.Name)
	}
	raw, err := r.files.read(ctx, run, file)
	if err != nil {
		return nil, err
	}
	contents := &sdk.ResourceContents{URI: req.Params.URI, MIMEType: httpwire.TypeOfFile(file.Name)}
	if isText(contents.MIMEType) && utf8.Valid(raw) {
		contents.Text = string(raw)
	} else {
		contents.Blob = raw
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}

// inRun returns the URI that a file in the directory for results has in its run, and any other as it is.
func (r results) inRun(uri string) string {
	out, err := filepath.Abs(r.out)
	rest, ours := strings.CutPrefix(uri, pathURI(out)+"/")
	run, name, whole := strings.Cut(rest, "/")
	if r.out == "" || err != nil || !ours || !whole {
		return uri
	}
	return runScheme + run + "/files/" + name
}

// tooLarge says where a large file is to be had.
func (r results) tooLarge(run, name string) error {
	if r.url == "" {
		return fault.New(fault.TooLarge, "the file has more than %d bytes; give its URI to a tool that takes a file",
			maxResource)
	}
	return fault.New(fault.TooLarge, "the file has more than %d bytes; GET %s/v1/runs/%s/files/%s has it", maxResource,
		r.url, run, httpwire.EscapePath(name))
}
