package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/protocol/a2a"
)

// a2aService adapts a Service of this process to A2A.
type a2aService struct {
	*orchestrator.Service
	fileBytes int64 // of one input file
}

// Agent implements a2a.Service.
func (s a2aService) Agent(ctx context.Context, name string) (a2a.Agent, error) {
	terms, err := s.AgentTerms(ctx, name)
	return a2a.Agent{
		Unit: terms.Unit, Schema: terms.Schema, Text: terms.Told.Text, Tags: terms.Told.Tags,
		Sessions: terms.Sessions,
	}, err
}

// Submit implements a2a.Service.
func (s a2aService) Submit(ctx context.Context, sub a2a.Submission) (record api.Record, err error) {
	spool, err := spooled(s.Service, s.fileBytes, sub.Files,
		func(f a2a.File) (string, io.Reader) { return f.Name, f.Content })
	if err != nil {
		return api.Record{}, err
	}
	begun := ""
	if sub.Begins {
		session, err := s.CreateSession(ctx, sub.Unit, nil)
		if err != nil {
			return api.Record{}, errors.Join(err, spool.Remove())
		}
		begun, sub.Session, sub.Context = session.ID, session.ID, session.ID
	}
	record, joined, err := s.Service.Submit(ctx, orchestrator.Submission{ // it owns the files from here
		Unit: sub.Unit, Session: sub.Session, Context: sub.Context, Input: sub.Input, Files: spool,
		Message: &sub.Message, Resend: sub.Resend, Metadata: sub.Metadata, TraceParent: sub.TraceParent,
		Pushes: sub.Pushes,
	})
	if begun != "" && (err != nil || record.Session != begun) {
		_, closed := s.CloseSession(context.WithoutCancel(ctx), begun, "its first message made no turn of it")
		err = errors.Join(err, closed)
	}
	for _, push := range sub.Pushes {
		if err == nil && joined { // what it was accepted with may be another's
			_, err = s.CreatePush(ctx, record.ID, push)
		}
	}
	return record, err
}

// Open implements a2a.Service.
func (s a2aService) Open(ctx context.Context, run, name string) (io.ReadCloser, error) {
	content, _, err := s.OpenFile(ctx, run, name)
	if err != nil {
		return nil, err
	}
	return content, nil
}

// Patch implements a2a.Service.
func (s a2aService) Patch(ctx context.Context, run string) (io.ReadCloser, error) {
	content, err := s.Service.Patch(ctx, run)
	if err != nil {
		return nil, err
	}
	return content, nil
}

// OpenArtifact implements a2a.Service.
func (s a2aService) OpenArtifact(ctx context.Context, run, artifact, name string) (io.ReadCloser, error) {
	content, _, err := s.Service.OpenArtifact(ctx, run, artifact, name)
	if err != nil {
		return nil, err
	}
	return content, nil
}

// List implements a2a.Service.
func (s a2aService) List(ctx context.Context, f a2a.Filter) (a2a.Page, error) {
	page, err := s.ListChanged(ctx,
		api.ChangedFilter{
			Unit: f.Unit, Context: f.Context, States: f.States, Since: f.Since, Limit: f.Limit,
			Cursor: f.Cursor,
		})
	return a2a.Page{Runs: page.Runs, Next: page.Next, Total: page.Total}, err
}

// a2aBody is the most that a request of A2A has: its files are in it, and all of it in memory.
const a2aBody = 32 << 20

func a2aOptions(
	c *config.Config, authorize func(context.Context, string) (context.Context, error), logger *slog.Logger,
) a2a.Options {
	return a2a.Options{
		Root: c.A2A.Root, Header: a2aHeader(c), NoAuth: c.NoAuth, Rate: c.A2A.Rate,
		PublicURL: c.A2A.PublicURL, HTTP: c.Listen, Private: c.A2A.Cards == config.CardsPrivate, GRPC: c.A2A.GRPC,
		MaxBytes: min(a2aBody, c.UploadLimit), Authorize: authorize, Version: versionText(), Logger: logger,
	}
}

// newAgents makes the agents of a service that isn't started yet.
func newAgents(service *orchestrator.Service, c *config.Config, opts a2a.Options) *a2a.Server {
	units := a2aService{service, c.UploadLimit}
	opts.Memory = service.Memory()
	if c.A2A.Push {
		opts.Push = service
	}
	agents := a2a.New(units, opts)
	service.RenderPushes(agents.RenderPush)
	return agents
}

// a2aHeader is the header that has the token; "": Authorization.
func a2aHeader(c *config.Config) string {
	if c.A2A.Auth == config.AuthAPIKey {
		return c.A2A.AuthHeader
	}
	return ""
}

// a2aMounts are the addresses of the agents and of their cards. JSON-RPC stands at the top of what
// HTTP+JSON has, and takes it over.
func a2aMounts(agents *a2a.Server, c *config.Config) []httpapi.Mount {
	header := a2aHeader(c)
	return []httpapi.Mount{
		{Patterns: a2a.RESTPatterns(), Handler: agents, Refusal: a2a.RESTRefusal, TokenHeader: header},
		{Patterns: a2a.RPCPatterns(), Handler: agents, Refusal: a2a.RPCRefusal, TokenHeader: header},
		{Patterns: a2a.CardPatterns(), Handler: agents, Open: c.A2A.Cards != config.CardsPrivate, TokenHeader: header},
	}
}

// serveAgents serves gRPC beside the API, where it has an address, until ctx ends. wait returns
// when it is over.
func serveAgents(ctx context.Context, agents *a2a.Server, address string) (wait func() error, err error) {
	if agents == nil || address == "" {
		return func() error { return nil }, nil
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- agents.ServeGRPC(ctx, listener) }()
	return func() error { return <-served }, nil
}

// serveAll serves the API and gRPC until ctx ends.
func serveAll(ctx context.Context, api served, listener net.Listener, c *config.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wait, err := serveAgents(ctx, api.agents, c.A2A.GRPC)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	err = api.Serve(ctx, listener)
	stop()
	return errors.Join(err, wait())
}
