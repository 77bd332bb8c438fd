package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strings"

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
type source struct{ run, artifact, name string }

// end gives the task what its run gave, and its last status.
func (v *view) end(ctx context.Context, record api.Record) ([]sdk.Event, error) {
	v.record = record
	if err := v.call.hold(ctx, v.call.sizeOf(record.Output)); err != nil {
		return nil, err
	}
	var told []sdk.Event
	artifacts, err := v.results(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range artifacts {
		told = append(told, v.keep(a, false, true))
	}
	v.ended = true
	if v.seq == 0 {
		v.seq = math.MaxInt64
	}
	return append(told, v.become(endOf(record))...), nil
}

// results are the artifacts that a run has at its end.
func (v *view) results(ctx context.Context) ([]*sdk.Artifact, error) {
	var all []*sdk.Artifact
	if output := v.output(); output != nil {
		all = append(all, output)
	}
	for _, f := range v.record.Files {
		part, err := v.file(ctx, source{v.record.ID, "", f.Name}, f.SizeBytes, httpwire.TypeOfFile(f.Name))
		if err != nil {
			return nil, err
		}
		all = append(all,
			&sdk.Artifact{ID: sdk.ArtifactID("file:" + f.Name), Name: f.Name, Parts: sdk.ContentParts{part}})
	}
	if v.record.Changes == nil {
		return all, nil
	}
	part, err := v.patch(ctx)
	if err != nil || part == nil {
		return all, err
	}
	return append(all, &sdk.Artifact{ID: "patch", Name: patchName, Parts: sdk.ContentParts{part}}), nil
}

// output is the artifact of a run's output: its text, and all of it as data.
func (v *view) output() *sdk.Artifact {
	value := v.call.value(v.record.Output)
	if value == nil {
		return nil
	}
	var parts sdk.ContentParts
	var text string
	if fields, err := httpwire.FieldsOf(v.record.Output); err == nil && httpwire.Take(fields, "text", &text) == nil &&
		text != "" {
		parts = append(parts, &sdk.Part{Content: sdk.Text(text), MediaType: typeText})
	}
	parts = append(parts, &sdk.Part{Content: sdk.Data{Value: value}, MediaType: httpwire.TypeJSON})
	return &sdk.Artifact{ID: "output", Name: "output", Parts: parts}
}

// patch is what a run changed in its workspace; nil where that is nothing.
func (v *view) patch(ctx context.Context) (*sdk.Part, error) {
	content, err := v.svc.Patch(ctx, v.record.ID)
	if err != nil {
		return nil, err
	}
	raw, err := readSome(content, min(maxRaw, v.inline))
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return v.link("/v1/runs/"+v.record.ID+"/"+patchName, patchName, typePatch), nil
	case len(raw) == 0:
		return nil, nil
	}
	return v.raw(ctx, raw, patchName, typePatch)
}

// raw is the content of a file as a part.
func (v *view) raw(ctx context.Context, content []byte, name, media string) (*sdk.Part, error) {
	v.inline -= int64(len(content))
	if err := v.call.hold(ctx, int64(len(content))); err != nil {
		return nil, err
	}
	return &sdk.Part{Content: sdk.Raw(content), Filename: name, MediaType: media}, nil
}

// file is a file as a part: its content, or where a larger one is.
func (v *view) file(ctx context.Context, from source, size int64, media string) (*sdk.Part, error) {
	if size > maxRaw || size > v.inline {
		return v.link(from.path(), from.name, media), nil
	}
	content, err := v.open(ctx, from)
	if err != nil {
		return nil, err
	}
	raw, err := readSome(content, maxRaw)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return v.link(from.path(), from.name, media), nil
	}
	return v.raw(ctx, raw, from.name, media)
}

func (v *view) open(ctx context.Context, from source) (io.ReadCloser, error) {
	if from.artifact != "" {
		return v.svc.OpenArtifact(ctx, from.run, from.artifact, from.name)
	}
	return v.svc.Open(ctx, from.run, from.name)
}

// path is the address of a file on the server.
func (f source) path() string {
	segments := strings.Split(f.name, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	middle := "/files/"
	if f.artifact != "" {
		middle = "/artifacts/" + url.PathEscape(f.artifact) + "/"
	}
	return "/v1/runs/" + f.run + middle + strings.Join(segments, "/")
}

func (v *view) link(path, name, media string) *sdk.Part {
	return &sdk.Part{Content: sdk.URL(v.call.base + path), Filename: name, MediaType: media}
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
func (v *view) parts(ctx context.Context, artifact string, stored []api.Part) (sdk.ContentParts, error) {
	parts := sdk.ContentParts{}
	for _, p := range stored {
		if p.File == nil {
			parts = append(parts, v.call.plainPart(p))
			continue
		}
		part, err := v.file(ctx, source{v.record.ID, artifact, p.File.Name}, p.File.SizeBytes, p.MediaType)
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

// artifact keeps a part of what a run gives, and tells of it.
func (v *view) artifact(ctx context.Context, a api.ArtifactEvent) ([]sdk.Event, error) {
	parts, err := v.parts(ctx, a.ID, a.Parts)
	if err != nil {
		return nil, err
	}
	made := &sdk.Artifact{ID: sdk.ArtifactID(a.ID), Name: a.Name, Parts: parts}
	return []sdk.Event{v.keep(made, a.Append, a.Last)}, nil
}

// keep adds an artifact to the task, or its parts to the one of the same id.
func (v *view) keep(a *sdk.Artifact, more, last bool) sdk.Event {
	told := &sdk.TaskArtifactUpdateEvent{
		TaskID: v.task.ID, ContextID: v.task.ContextID, Artifact: a, Append: more,
		LastChunk: last,
	}
	for i, known := range v.task.Artifacts {
		if known.ID != a.ID {
			continue
		}
		whole := *a
		if more {
			whole.Parts = append(append(sdk.ContentParts{}, known.Parts...), a.Parts...)
		}
		v.task.Artifacts[i] = &whole
		return told
	}
	told.Append = false
	v.task.Artifacts = append(v.task.Artifacts, a)
	return told
}
