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
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/protocol/a2a"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// a2aService adapts a Service of this process to A2A.
type a2aService struct {
	face
	*keys.Resends
	rules a2aRules
}

// Admits implements a2a.Service.
func (s a2aService) Admits(ctx context.Context, unit string) error {
	if s.Service.Units.Hides(ctx, unit) {
		return nil // as of a unit that isn't there
	}
	return s.rules.admits(ctx, s.FullName(ctx, unit))
}

// Units implements a2a.Service.
func (s a2aService) Units(ctx context.Context) ([]api.Unit, error) {
	all, err := s.face.Units(ctx)
	return s.rules.visible(ctx, all), err
}

// Question implements a2a.Service.
func (s a2aService) Question(ctx context.Context, id string) (api.Question, error) {
	return s.Questions.Get(ctx, id)
}

// Session implements a2a.Service.
func (s a2aService) Session(ctx context.Context, id string) (api.Session, error) {
	return s.Sessions.Get(ctx, id)
}

// Agent implements a2a.Service.
func (s a2aService) Agent(ctx context.Context, name string) (a2a.Agent, error) {
	if err := s.rules.shows(ctx, s.FullName(ctx, name)); err != nil {
		return a2a.Agent{}, err
	}
	terms, err := s.Service.Units.Terms(ctx, name)
	return a2a.Agent{
		Unit: terms.Unit, Schema: terms.Schema, Text: terms.Told.Text, Tags: terms.Told.Tags,
		Sessions: terms.Sessions,
	}, err
}

// CreateSession implements a2a.Service.
func (s a2aService) CreateSession(ctx context.Context, unit string, files *spool.Spool) (api.Session, error) {
	return s.Sessions.Create(ctx, unit, files)
}

// CloseSession implements a2a.Service.
func (s a2aService) CloseSession(ctx context.Context, id, reason string) (api.Session, error) {
	return s.Sessions.Close(ctx, id, reason)
}

// AnswerResent implements a2a.Service.
func (s a2aService) AnswerResent(ctx context.Context, run, digest, question string, answer api.Answer) error {
	return s.Answer(ctx, run, digest, question, answer)
}

// Open implements a2a.Service.
func (s a2aService) Open(ctx context.Context, run, name string) (io.ReadCloser, error) {
	content, _, err := s.Files.Open(ctx, run, name)
	return reader(content, err)
}

// Patch implements a2a.Service.
func (s a2aService) Patch(ctx context.Context, run string) (io.ReadCloser, error) {
	return reader(s.Files.Patch(ctx, run))
}

// SayResent implements a2a.Service.
func (s a2aService) SayResent(ctx context.Context, run, digest string, m api.MessageEvent) error {
	once, err := keys.Resent(digest, run)
	if err != nil {
		return err
	}
	told, _ := orchestrator.FeatureOf[*messages.Feature](s.Service)
	_, err = told.Say(ctx, run, once, m, nil)
	return err
}

// OpenArtifact implements a2a.Service.
func (s a2aService) OpenArtifact(ctx context.Context, run, artifact, name string) (io.ReadCloser, error) {
	shown, _ := orchestrator.FeatureOf[*artifacts.Feature](s.Service)
	content, _, err := shown.OpenFile(ctx, run, artifact, name)
	return reader(content, err)
}

// a2aBody is the most that a request of A2A has: its files are in it, and all of it in memory.
const a2aBody = 32 << 20

func a2aOptions(
	c *config.Config, authorize func(ctx context.Context, of a2a.Caller) (context.Context, error),
	logger *slog.Logger,
) a2a.Options {
	return a2a.Options{
		Root: c.A2A.Root, Header: a2aHeader(c), NoAuth: c.NoAuth,
		Rate: c.A2A.Rate, Rates: a2aRulesOf(c).rates(c.A2A.Rate),
		PublicURL: c.A2A.PublicURL, HTTP: c.Listen, TLS: c.TLS != config.TLSOff,
		Private: c.A2A.Cards == config.CardsPrivate, GRPC: c.A2A.GRPC,
		MaxBytes: min(a2aBody, c.UploadLimit), Authorize: authorize, Version: versionText(), Logger: logger,
	}
}

// newAgents makes the agents of a service that isn't started yet.
func newAgents(service *orchestrator.Service, c *config.Config, opts a2a.Options) *a2a.Server {
	opts.Memory = service.Memory()
	told, _ := orchestrator.FeatureOf[*pushes.Feature](service)
	if c.A2A.Push {
		opts.Push = told
	}
	agents := a2a.New(a2aService{faceOf(service), service.Resends, a2aRulesOf(c)}, opts)
	if c.A2A.Push {
		told.Render(agents.RenderPush)
	}
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
func serveAgents(ctx context.Context, agents *a2a.Server, e *entrance, address string) (wait func() error, err error) {
	if agents == nil || address == "" {
		return func() error { return nil }, nil
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- agents.ServeGRPC(ctx, e.behind(listener, http2)) }()
	return func() error { return <-served }, nil
}

// serveAll serves the API and gRPC until ctx ends.
func serveAll(ctx context.Context, api served, e *entrance, listener net.Listener, c *config.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wait, err := serveAgents(ctx, api.agents, e, c.A2A.GRPC)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	err = api.Serve(ctx, e.behind(listener, http2, http1))
	stop()
	return errors.Join(err, wait())
}
