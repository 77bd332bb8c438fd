package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/agent-on-demand/aod/config"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/protocol/a2a"
)

// a2aBody is the most that a request of A2A has: its files are in it, and all of it in memory.
const a2aBody = 32 << 20

func a2aOptions(c *config.Config, authorize func(context.Context, string) (context.Context, error), logger *slog.Logger) a2a.Options {
	return a2a.Options{
		Root: c.A2A.Root, Header: a2aHeader(c), NoAuth: c.NoAuth, Rate: c.A2A.Rate,
		PublicURL: c.A2A.PublicURL, HTTP: c.Listen, Private: c.A2A.Cards == config.CardsPrivate, GRPC: c.A2A.GRPC,
		MaxBytes: min(a2aBody, c.UploadLimit), Authorize: authorize, Version: versionText(), Logger: logger,
	}
}

// newAgents makes the agents of a service that isn't started yet.
func newAgents(service *orchestrator.Service, c *config.Config, opts a2a.Options) *a2a.Server {
	units := a2aService{service, c.UploadLimit}
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
