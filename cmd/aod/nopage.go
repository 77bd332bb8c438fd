//go:build no_ui

package main

import (
	"context"
	"log/slog"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// hasPage says that the program has the page.
const hasPage = false

// pageMounts are none: the API says so where the page would be.
func pageMounts(
	*orchestrator.Service, *config.Config, *issuer.Issuer, func(context.Context, string) (signins.Session, error),
	*slog.Logger,
) ([]httpapi.Mount, error) {
	return nil, nil
}
