package admin

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/audit"
)

// tokens are those of a server.
type tokens interface {
	List(ctx context.Context) ([]api.Token, error)
	Add(ctx context.Context, asked api.TokenRequest) (string, error)
	Rotate(ctx context.Context, name, grace string) (string, error)
	Remove(ctx context.Context, name, give string) (api.RemovedToken, error)
}

// tokensOf are those of the server that is named, by its API; else those in the file of the data directory. server is
// nil for them.
func tokensOf(env *cli.Env) (_ tokens, server *client.Client, err error) {
	if env.Server == "" {
		return filed{env, NamedTokens(env.Home())}, nil, nil
	}
	if server, err = env.Connect(); err != nil {
		return nil, nil, err
	}
	return server.Tokens, server, nil
}

// filed are the tokens in the file of a data directory.
type filed struct {
	env  *cli.Env
	file *access.Tokens
}

// List implements tokens.
func (f filed) List(context.Context) (all []api.Token, err error) {
	stored, err := f.file.List()
	for _, token := range stored {
		all = append(all, token.Shown(time.Now()))
	}
	return all, err
}

// Add implements tokens.
func (f filed) Add(_ context.Context, asked api.TokenRequest) (string, error) {
	grant, err := access.GrantAsked(asked, time.Now())
	if err != nil {
		return "", err
	}
	token, err := f.file.Add(grant)
	return token, f.did(err, "add", grant.Name)
}

// did leaves a note of a change for the audit, unless it failed.
func (f filed) did(err error, verb, name string) error {
	if err != nil {
		return err
	}
	return audit.Leave(f.env.Home(), verb, "token", name, "")
}

// Rotate implements tokens.
func (f filed) Rotate(_ context.Context, name, grace string) (string, error) {
	d, err := access.ParseGrace(grace)
	if err != nil {
		return "", err
	}
	token, err := f.file.Rotate(name, d)
	return token, f.did(err, "rotate", name)
}

// Remove implements tokens. Schedules are the server's, which has to give them.
func (f filed) Remove(ctx context.Context, name, give string) (api.RemovedToken, error) {
	if give != "" {
		server, err := f.env.ConnectHere()
		if err != nil {
			return api.RemovedToken{}, err
		}
		return server.Tokens.Remove(ctx, name, give)
	}
	return api.RemovedToken{Name: name}, f.did(f.file.Remove(name), "remove", name)
}
