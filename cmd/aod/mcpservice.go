package main

import (
	"context"
	"errors"
	"io"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// mcpService adapts a Service of this process to MCP.
type mcpService struct {
	*orchestrator.Service
	fileBytes int64 // of one input file
}

// Submit implements mcp.Service.
func (s mcpService) Submit(ctx context.Context, sub mcp.Submission) (api.Record, error) {
	spool, err := spooled(s.Service, s.fileBytes, sub.Files,
		func(f mcp.File) (string, io.Reader) { return f.Name, f.Content })
	if err != nil {
		return api.Record{}, err
	}
	record, _, err := s.Service.Submit(ctx, orchestrator.Submission{ // it owns the files from here
		Unit: sub.Unit, Input: sub.Input, Files: spool, Metadata: sub.Metadata, TraceParent: sub.TraceParent,
	})
	return record, err
}

// Open implements mcp.Service.
func (s mcpService) Open(ctx context.Context, id string, file api.File) (io.ReadCloser, error) {
	content, _, err := s.OpenFile(ctx, id, file.Name)
	if err != nil {
		return nil, err
	}
	return content, nil
}

// spooled receives the files of a protocol's message, each of at most limit bytes, under the names
// that the input has for them; nil: there are none.
func spooled[F any](
	service *orchestrator.Service, limit int64, files []F, of func(F) (name string, content io.Reader),
) (*spool.Spool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	received, err := service.NewSpool()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name, content := of(f)
		if err := received.Add("", name, content, limit); err != nil {
			return nil, errors.Join(err, received.Remove())
		}
	}
	return received, nil
}
