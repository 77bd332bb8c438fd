package mcp

import (
	"context"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// mcpRemote adapts a server that runs elsewhere to MCP.
type mcpRemote struct{ server *client.Client }

// firstWait is how long a server is asked to wait for a run before it answers: most are over
// by then, and all is said in one request.
const firstWait = time.Second

// Units implements mcp.Service.
func (r mcpRemote) Units(ctx context.Context) ([]api.Unit, error) { return r.server.Units.List(ctx) }

// Schema implements mcp.Service.
func (r mcpRemote) Schema(ctx context.Context, unit string) ([]byte, error) {
	return r.server.Units.Schema(ctx, unit)
}

// Submit implements mcp.Service.
func (r mcpRemote) Submit(ctx context.Context, sub mcp.Submission) (api.Record, error) {
	asked := client.Submission{Unit: sub.Unit, Input: sub.Input, Metadata: sub.Metadata, TraceParent: sub.TraceParent}
	if len(sub.Files) == 0 {
		ctx, stop := cli.Lingering(ctx, cli.SubmitGrace) // else nobody would know the run of a call that is given up
		defer stop()
		asked.Wait = firstWait
		return r.server.Runs.Submit(ctx, asked)
	}
	dir, err := os.MkdirTemp("", "aod-mcp-")
	if err != nil {
		return api.Record{}, cli.NotKept(err, "a file of the call")
	}
	defer func() { _ = os.RemoveAll(dir) }() // of the temporary directory
	for i, f := range sub.Files {
		file, err := keep(filepath.Join(dir, strconv.Itoa(i)), f)
		if err != nil {
			return api.Record{}, err
		}
		asked.Files = append(asked.Files, file)
	}
	return r.server.Runs.Submit(ctx, asked)
}

// keep writes a file of a call to a directory of its own, to be sent from there.
func keep(dir string, f mcp.File) (client.InputFile, error) {
	file := client.InputFile{Field: run.FieldOf(f.Pointer), Path: filepath.Join(dir, path.Base(f.Name))}
	err := os.Mkdir(dir, 0o700)
	if err != nil {
		return file, err
	}
	out, err := os.OpenFile(file.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return file, err
	}
	if _, err := io.Copy(out, f.Content); err != nil {
		_ = out.Close()
		return file, err
	}
	return file, out.Close()
}

// Get implements mcp.Service.
func (r mcpRemote) Get(ctx context.Context, id string) (api.Record, error) {
	return r.server.Runs.Get(ctx, id)
}

// Await implements mcp.Service. A run has its outcome before its container is gone, which the
// last event waits for.
func (r mcpRemote) Await(ctx context.Context, id string) (api.Record, error) {
	return r.await(ctx, id, mayBeOutcome, func(record api.Record) bool { return record.Outcome != "" })
}

// AwaitAsked implements mcp.Service.
func (r mcpRemote) AwaitAsked(ctx context.Context, id string) (api.Record, error) {
	return r.await(ctx, id, func(e api.Event) bool { return mayBeOutcome(e) || isAsked(e) },
		func(record api.Record) bool { return record.Outcome != "" || record.Question != nil })
}

// await waits for a record that is as wanted, which some events may tell of, or for the end of the run.
func (r mcpRemote) await(
	ctx context.Context, id string, tells func(api.Event) bool, wanted func(api.Record) bool,
) (api.Record, error) {
	for e, err := range r.server.Runs.Events(ctx, id, 0) {
		if err != nil && ctx.Err() == nil {
			return api.Record{}, err
		}
		if err != nil || e.Type == api.EventEnd {
			break
		}
		if !tells(e) {
			continue
		}
		if record, err := r.server.Runs.Get(ctx, id); err == nil && wanted(record) {
			return record, nil
		}
	}
	return r.server.Runs.Get(context.WithoutCancel(ctx), id)
}

// isAsked reports whether an event says that a run asks something.
func isAsked(e api.Event) bool {
	data, _ := e.Decode() // what can't be read is of no interest
	asked, ok := data.(api.QuestionEvent)
	return ok && asked.State == api.QuestionOpen
}

// Asked implements mcp.Service.
func (r mcpRemote) Asked(ctx context.Context, run string) (asked []api.Question, err error) {
	for q, err := range r.server.Questions.List(ctx, run) {
		if err != nil {
			return nil, err
		}
		asked = append(asked, q)
	}
	return asked, nil
}

// Answer implements mcp.Service.
func (r mcpRemote) Answer(ctx context.Context, question string, answer api.Answer) error {
	return r.server.Questions.Answer(ctx, question, answer)
}

// mayBeOutcome reports whether an event says that a run, or one attempt of it, is over.
func mayBeOutcome(e api.Event) bool {
	data, _ := e.Decode() // what can't be read is of no interest
	entered, ok := data.(api.Transition)
	return ok && slices.Contains([]api.State{api.Completed, api.Failed, api.Timeout, api.Cancelled}, entered.State)
}

// Open implements mcp.Service.
func (r mcpRemote) Open(ctx context.Context, id string, file api.File) (io.ReadCloser, error) {
	in, out := io.Pipe()
	// it ends with its reader, who closes
	go func() { _ = out.CloseWithError(r.server.Files.Get(ctx, id, file, out)) }()
	return in, nil
}

// Events implements mcp.Service.
func (r mcpRemote) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return r.server.Runs.Events(ctx, id, after)
}

// Cancel implements mcp.Service.
func (r mcpRemote) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	return r.server.Runs.Cancel(ctx, id, reason)
}
