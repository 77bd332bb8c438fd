//go:build !no_ui

package main

import (
	"context"
	"log/slog"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/signins"
	"github.com/agent-on-demand/aod/orchestrator/web"
)

// hasPage says that the program has the page.
const hasPage = true

// pageMounts are the addresses of the page, by the scope that they need.
func pageMounts(
	service *orchestrator.Service, c *config.Config, people *issuer.Issuer,
	signIn func(ctx context.Context, token string) (signins.Session, error), logger *slog.Logger,
) (mounts []httpapi.Mount, err error) {
	opts := web.Options{
		Version: versionText(), NoAuth: c.NoAuth, SignIn: signIn, People: people, Redirect: c.OIDC.Redirect,
		Logger:      logger,
		UploadBytes: c.UploadLimit, PayloadBytes: c.PayloadLimit,
	}
	if machines, has := orchestrator.FeatureOf[*workers.Feature](service); has {
		opts.Workers = machines
	}
	page, err := web.New(service, opts)
	if err != nil {
		return nil, err
	}
	for _, r := range page.Routes() {
		mounts = append(mounts, httpapi.Mount{
			Patterns: []string{r.Pattern}, Handler: page, Page: page.Refuse, Scope: r.Scope, Open: r.Scope == "",
		})
	}
	return mounts, nil
}
