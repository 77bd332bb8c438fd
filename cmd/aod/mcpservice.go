package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// mcpService adapts a Service of this process to MCP.
type mcpService struct {
	face
	fileBytes int64 // of one input file
}

func newMCPService(service *orchestrator.Service, c *config.Config) mcpService {
	return mcpService{faceOf(service), c.UploadLimit}
}

// Submit implements mcp.Service.
func (s mcpService) Submit(ctx context.Context, sub mcp.Submission) (api.Record, error) {
	files, err := s.receive(sub.Files)
	if err != nil {
		return api.Record{}, err
	}
	record, _, err := s.Service.Submit(ctx, spool.Submission{ // it owns the files from here
		Unit: sub.Unit, Input: sub.Input, Files: files, Metadata: sub.Metadata, TraceParent: sub.TraceParent,
	})
	return record, err
}

// Asked implements mcp.Service.
func (s mcpService) Asked(ctx context.Context, run string) ([]api.Question, error) {
	page, err := s.Questions.List(ctx, questions.Filter{Run: run})
	return page.Questions, err
}

// Answer implements mcp.Service.
func (s mcpService) Answer(ctx context.Context, question string, answer api.Answer) error {
	return s.Questions.Answer(ctx, question, answer)
}

// Open implements mcp.Service.
func (s mcpService) Open(ctx context.Context, id string, file api.File) (io.ReadCloser, error) {
	content, _, err := s.Files.Open(ctx, id, file.Name)
	return reader(content, err)
}

// receive returns the files of a call as those of a submission, each of at most the limit of bytes, under the names
// that the input has for them; nil: there are none.
func (s mcpService) receive(files []mcp.File) (*spool.Spool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	received, err := s.NewSpool()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := received.Add("", f.Name, f.Content, s.fileBytes); err != nil {
			return nil, errors.Join(err, received.Remove())
		}
	}
	return received, nil
}

// ownUnits serves the units of a command by a service of its own.
func (a *app) ownUnits(
	cmd *cobra.Command, flags runflags.Sources, logger *slog.Logger, do func(context.Context, mcp.Service) error,
) error {
	ctx := access.WithServer(cmd.Context()) // whose command it is has all that it makes
	c, err := config.Load(config.Options{Flags: cmd.Flags(), Getenv: os.Getenv, Data: cli.DefaultData()})
	if err != nil {
		return err
	}
	from, err := a.ownSources(c, flags)
	if err != nil {
		return err
	}
	serve := func(service *orchestrator.Service) error {
		if err := service.Start(ctx); err != nil {
			return err
		}
		defer shutdown(ctx, service, c)
		return do(ctx, newMCPService(service, c))
	}
	for n := 1; ; n++ { // each client starts a command of its own
		held := false
		home := filepath.Join(c.Data, "mcp", strconv.Itoa(n))
		err := a.withService(ctx, serving{Config: c, home: home, logger: logger, from: from},
			func(service *orchestrator.Service, _ *reloader) error {
				held = true
				return serve(service)
			})
		if held || !fault.Is(err, fault.Conflict) || n == maxClients {
			return err
		}
	}
}

// ownSources are those of a command's own units: its flags and the environment name them as for aod run, a server's
// file the rest. A unit's program may have the secrets of --secret: whoever named them is its operator.
func (a *app) ownSources(c *config.Config, flags runflags.Sources) (runflags.Found, error) {
	units, whole := lookup.Units(c.Units)
	from, err := flags.Find(runflags.Beside{
		Secrets: c.Secrets, Catalog: c.Catalog(), Upstreams: c.Upstreams, Units: units, Whole: whole,
	})
	c.Upstreams = from.Upstreams
	c.Policy.Secrets = slices.AppendSeq(c.Policy.Secrets, maps.Keys(from.Secrets.Named))
	from.SayWherePromptsGo(a.env, units)
	return from, err
}

// maxClients is how many of these commands have units of their own at a time.
const maxClients = 32
