package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
)

// mcpMount gives capsules the units that they may call as tools of MCP.
func mcpMount(logger *slog.Logger) capsuleapi.Mount {
	return capsuleapi.Mount{Path: mcp.Path, New: func(b *handoff.Broker) http.Handler {
		return &lazyMCP{make: func() *mcp.Server {
			return mcp.New(mcpCalls{b}, mcp.Options{Tools: toolsOf(b.Caller()), Version: versionText(), Logger: logger})
		}}
	}}
}

// lazyMCP is a server that is made when somebody asks: most runs never do.
type lazyMCP struct {
	make   func() *mcp.Server
	once   sync.Once
	server *mcp.Server
}

// ServeHTTP implements http.Handler.
func (l *lazyMCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.once.Do(func() { l.server = l.make() })
	if l.server != nil {
		l.server.ServeHTTP(w, r)
	}
}

// Close implements io.Closer.
func (l *lazyMCP) Close() error {
	l.once.Do(func() {}) // from here on none is made
	if l.server == nil {
		return nil
	}
	return l.server.Close()
}

// toolsOf are the units that a run may call, under the names of its tools.yaml.
func toolsOf(caller handoff.Caller) []mcp.Tool {
	tools := []mcp.Tool{} // not nil: no others
	for _, unit := range caller.Grants {
		tool := mcp.Tool{Name: unit, Unit: unit}
		if i := slices.IndexFunc(caller.Tools, func(t capsule.Tool) bool { return t.Capsule == unit }); i >= 0 {
			tool.Name, tool.Description = caller.Tools[i].Name, caller.Tools[i].Description
		}
		tools = append(tools, tool)
	}
	return tools
}

// mcpCalls adapts the calls of a run to MCP: they are handoffs, with all their rules.
type mcpCalls struct{ *handoff.Broker }

// Units implements mcp.Service.
func (c mcpCalls) Units(ctx context.Context) ([]api.Unit, error) {
	granted, err := c.Broker.Units(ctx)
	if err != nil {
		return nil, err
	}
	units := make([]api.Unit, 0, len(granted))
	for name, u := range granted {
		version := sha256.Sum256(u.Schema)
		units = append(units,
			api.Unit{
				Name: name, Kind: cmp.Or(u.Kind, capsule.KindCapsule), Description: u.Description,
				Version: hex.EncodeToString(version[:]),
			})
	}
	return units, nil
}

// Schema implements mcp.Service.
func (c mcpCalls) Schema(ctx context.Context, name string) ([]byte, error) {
	u, err := c.Unit(ctx, name)
	if err != nil {
		return nil, err
	}
	return u.Schema, nil
}

// Submit implements mcp.Service.
func (c mcpCalls) Submit(ctx context.Context, sub mcp.Submission) (api.Record, error) {
	asked := handoff.Request{Target: sub.Unit, Args: sub.Input, Files: map[string]*os.File{}}
	for _, f := range sub.Files {
		file, isFile := f.Content.(*os.File)
		if !isFile {
			var err error
			if file, err = heldFile(f.Content); err != nil {
				return api.Record{}, err
			}
			defer file.Close()
		}
		asked.Files[f.Name] = file
	}
	id, err := c.Start(ctx, asked)
	if err != nil {
		return api.Record{}, err
	}
	return api.Record{ID: id, Unit: sub.Unit, State: api.Idle, Metadata: sub.Metadata, CreatedAt: madeAt(id)}, nil
}

// heldFile holds a content in a file without a name.
func heldFile(content io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "aod-mcp-")
	if err != nil {
		return nil, cli.NotKept(err, "a file of the call")
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = io.Copy(file, content)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, cli.NotKept(err, "a file of the call")
	}
	return file, nil
}

// Get implements mcp.Service.
func (c mcpCalls) Get(ctx context.Context, id string) (api.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	return c.Await(ctx, id)
}

// Await implements mcp.Service.
func (c mcpCalls) Await(ctx context.Context, id string) (api.Record, error) {
	result, err := c.Broker.Await(ctx, id)
	if err != nil {
		return api.Record{}, err
	}
	return recordOfCall(result), nil
}

// AwaitAsked implements mcp.Service: what a called run asks, a person answers at the server.
func (c mcpCalls) AwaitAsked(ctx context.Context, id string) (api.Record, error) {
	return c.Await(ctx, id)
}

// Asked implements mcp.Service.
func (mcpCalls) Asked(context.Context, string) ([]api.Question, error) { return nil, nil }

// Answer implements mcp.Service.
func (mcpCalls) Answer(context.Context, string, api.Answer) error {
	return fault.New(fault.NotFound, "a capsule answers no questions")
}

// recordOfCall is a call as a record shows it.
func recordOfCall(r handoff.Result) api.Record {
	record := api.Record{
		ID: r.ID, State: api.State(r.State), Output: r.Output, ExitCode: r.ExitCode, CreatedAt: madeAt(r.ID),
		Metadata: map[string]string{mcp.ClientKey: "capsule"},
	}
	for _, f := range r.Files {
		record.Files = append(record.Files,
			api.File{Name: f.Name, Path: f.Path, SizeBytes: f.SizeBytes, SHA256: f.SHA256})
	}
	if e := r.Error; e != nil {
		record.Error = &api.RunError{
			Category: api.Category(e.Category), Kind: e.Kind, Type: e.Type, Message: e.Message, Hint: e.Hint,
			Findings: e.Findings,
		}
	}
	switch {
	case !r.Ended:
	case r.Success:
		record.Outcome = api.Success
	case record.State == api.Cancelled:
		record.Outcome = api.WasCancelled
	default:
		record.Outcome = api.SystemError
		if r.Error != nil {
			record.Outcome = api.Outcome(r.Error.Kind)
		}
	}
	return record
}

// madeAt is when a run was accepted: its id says so.
func madeAt(id string) time.Time {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(parsed.Time().UnixTime()).UTC()
}

// Events implements mcp.Service: a caller is told what its call says of itself, and no more.
func (c mcpCalls) Events(ctx context.Context, id string, _ int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for said := range c.Told(ctx, id) {
			raw, err := json.Marshal(api.ProgressEvent(said))
			if !yield(api.Event{Type: api.EventProgress, Data: raw}, err) {
				return
			}
		}
	}
}

// Cancel implements mcp.Service.
func (c mcpCalls) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	_, err := c.Broker.Cancel(ctx, id, reason)
	return api.Record{}, err
}

// Open implements mcp.Service.
func (c mcpCalls) Open(_ context.Context, _ string, file api.File) (io.ReadCloser, error) {
	content, err := os.Open(file.Path)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the file is gone")
	}
	return content, nil
}
