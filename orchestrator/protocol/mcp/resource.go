package mcp

import (
	"context"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// maxResource is how large a file may be that is read as a resource.
const maxResource = 8 << 20

// readResource reads a file of a run.
func (s *Server) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	run, file, err := s.findFile(ctx, req.Params.URI)
	if err != nil {
		return nil, err
	}
	if file.SizeBytes > maxResource {
		return nil, s.tooLarge(run, file.Name)
	}
	raw, err := s.readFile(ctx, run, file)
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

// tooLarge says where a large file is to be had.
func (s *Server) tooLarge(run, name string) error {
	if s.opts.URL == "" {
		return fault.New(fault.TooLarge, "the file has more than %d bytes; give its URI to a tool that takes a file",
			maxResource)
	}
	return fault.New(fault.TooLarge, "the file has more than %d bytes; GET %s/v1/runs/%s/files/%s has it", maxResource,
		s.opts.URL, run, escaped(name))
}
