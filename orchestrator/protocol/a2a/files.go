package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	maxRaw    = 1 << 20 // bytes of a file that stands in a task itself
	maxInline = 8 << 20 // bytes of all of them

	patchName = "changes.patch"
	typePatch = "text/x-diff"
)

// source says where a file of a run is.
type source struct{ artifact, name string } // "": it is one of the run's own

// fileParts makes parts of the files of a run.
type fileParts struct {
	svc    Service
	call   *call
	run    string
	inline int64 // bytes of files that may still stand in the task
}

// patch is what a run changed in its workspace; nil where that is nothing.
func (f *fileParts) patch(ctx context.Context) (*sdk.Part, error) {
	content, err := f.svc.Patch(ctx, f.run)
	if err != nil {
		return nil, err
	}
	raw, err := readSome(content, min(maxRaw, f.inline))
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return f.link("/v1/runs/"+f.run+"/"+patchName, patchName, typePatch), nil
	case len(raw) == 0:
		return nil, nil
	}
	return f.raw(ctx, raw, patchName, typePatch)
}

// raw is the content of a file as a part.
func (f *fileParts) raw(ctx context.Context, content []byte, name, media string) (*sdk.Part, error) {
	f.inline -= int64(len(content))
	if err := f.call.hold(ctx, int64(len(content))); err != nil {
		return nil, err
	}
	return &sdk.Part{Content: sdk.Raw(content), Filename: name, MediaType: media}, nil
}

// file is a file as a part: its content, or where a larger one is.
func (f *fileParts) file(ctx context.Context, from source, size int64, media string) (*sdk.Part, error) {
	if size > maxRaw || size > f.inline {
		return f.link(from.path(f.run), from.name, media), nil
	}
	content, err := f.open(ctx, from)
	if err != nil {
		return nil, err
	}
	raw, err := readSome(content, maxRaw)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return f.link(from.path(f.run), from.name, media), nil
	}
	return f.raw(ctx, raw, from.name, media)
}

func (f *fileParts) open(ctx context.Context, from source) (io.ReadCloser, error) {
	if from.artifact != "" {
		return f.svc.OpenArtifact(ctx, f.run, from.artifact, from.name)
	}
	return f.svc.Open(ctx, f.run, from.name)
}

// path is the address of a file on the server.
func (s source) path(run string) string {
	middle := "/files/"
	if s.artifact != "" {
		middle = "/artifacts/" + url.PathEscape(s.artifact) + "/"
	}
	return "/v1/runs/" + run + middle + httpwire.EscapePath(s.name)
}

func (f *fileParts) link(path, name, media string) *sdk.Part {
	return &sdk.Part{Content: sdk.URL(f.call.base + path), Filename: name, MediaType: media}
}

// readSome reads and closes a file of at most limit bytes; nil: it has more.
func readSome(content io.ReadCloser, limit int64) (raw []byte, err error) {
	defer func() { err = errors.Join(err, content.Close()) }()
	raw, err = io.ReadAll(io.LimitReader(content, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read a file of a task: %w", err)
	}
	if int64(len(raw)) > limit {
		return nil, nil
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw, nil
}

// parts are the parts of an artifact as the protocol has them.
func (f *fileParts) parts(ctx context.Context, artifact string, stored []api.Part) (sdk.ContentParts, error) {
	parts := sdk.ContentParts{}
	for _, p := range stored {
		if p.File == nil {
			parts = append(parts, f.call.plainPart(p))
			continue
		}
		part, err := f.file(ctx, source{artifact, p.File.Name}, p.File.SizeBytes, p.MediaType)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// spoken are the parts of a message as the protocol has them. Of its files only what is known of
// them: whoever sent them has them.
func (c *call) spoken(stored []api.Part) sdk.ContentParts {
	parts := sdk.ContentParts{}
	for _, p := range stored {
		if p.File == nil {
			parts = append(parts, c.plainPart(p))
			continue
		}
		known := map[string]any{"name": p.File.Name, "size_bytes": float64(p.File.SizeBytes), "sha256": p.File.SHA256}
		parts = append(parts, &sdk.Part{
			Content: sdk.Data{Value: map[string]any{"file": known}}, Filename: p.File.Name,
			MediaType: httpwire.TypeJSON,
		})
	}
	return parts
}

func (c *call) plainPart(p api.Part) *sdk.Part {
	if p.Data == nil {
		return &sdk.Part{Content: sdk.Text(p.Text), MediaType: p.MediaType}
	}
	return &sdk.Part{Content: sdk.Data{Value: c.value(p.Data)}, MediaType: p.MediaType}
}

// asIs reports whether the call's binding writes JSON as it is. The others need it decoded, which
// takes far more memory.
func (c *call) asIs() bool { return !c.grpc && !c.legacy }

// value is stored JSON as the call's binding takes it; nil: there is none.
func (c *call) value(raw json.RawMessage) any {
	value, ok := any(raw), len(raw) > 0 && string(raw) != "null"
	if ok && !c.asIs() {
		value, ok = valueOf(raw)
	}
	if !ok {
		return nil
	}
	return value
}

// valueBytes is about what each value takes in memory, beside its text, where JSON is decoded.
const valueBytes = 48

// sizeOf is about what a stored document takes where it is told.
func (c *call) sizeOf(raw json.RawMessage) int64 {
	if c.asIs() {
		return int64(len(raw))
	}
	values := bytes.Count(raw, []byte(",")) + bytes.Count(raw, []byte(":")) + bytes.Count(raw, []byte("["))
	return int64(len(raw)) + valueBytes*int64(values)
}
