package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// reloader has a server read its settings again: all of them hold that can, or none.
type reloader struct {
	read    func() (*config.Config, error) // as at the start
	gateway *gateway.Gateway
	logger  *slog.Logger

	now     atomic.Pointer[config.Config]
	service *orchestrator.Service
	people  *issuer.Issuer // nil: nobody signs in

	one sync.Mutex // of the reloads: one at a time
}

// newReloader returns a reloader for a server with some settings.
func newReloader(c *config.Config, logger *slog.Logger) *reloader {
	r := &reloader{logger: logger}
	r.now.Store(c)
	r.people = issuerOf(r)
	return r
}

// config returns the settings in force.
func (r *reloader) config() *config.Config { return r.now.Load() }

// reload reads the settings. Its error is a fault with all that is wrong with them, and nothing has changed then.
func (r *reloader) reload(ctx context.Context) (api.Reload, error) {
	r.one.Lock()
	defer r.one.Unlock()
	next, err := r.read()
	if err != nil {
		return api.Reload{}, err
	}
	change := r.config().Again(next)
	c := change.Config
	if err := r.gateway.Configure(c.Catalog()); err != nil { // the one step that can fail
		return api.Reload{}, err
	}
	r.now.Store(c)
	if feature, ok := orchestrator.FeatureOf[*models.Feature](r.service); ok {
		feature.Bound(budgetOf(c), quotasOf(c))
	}
	if feature, ok := orchestrator.FeatureOf[*pushes.Feature](r.service); ok {
		feature.AllowHooks(c.Webhooks.Enabled, c.Webhooks.Exceptions())
	}
	if r.people != nil {
		r.people.Set(rulesOf(r))
	}
	r.service.Configure(orchestrator.Configuration{
		Units:  units.Given{Settings: settingsOfUnits(c), Bounds: boundsFor(c)},
		Quotas: boundsOf(c),
	})
	done := api.Reload{Changed: change.Changed, Restart: change.Restart}
	r.logger.Info("settings read again", "changed", len(done.Changed), "restart", len(done.Restart))
	return done, r.service.Audit.Did(ctx, "reload", "config", strings.Join(done.Changed, " "))
}

// onSignal reloads with each SIGHUP, until ctx ends or stop is called.
func (r *reloader) onSignal(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(access.WithGrant(ctx, access.Grant{Scopes: []access.Scope{access.Admin}}))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return cli.Beside(cancel, func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if _, err := r.reload(ctx); err != nil {
				r.logFindings(err)
			}
		}
	})
}

// logFindings tells what is wrong with the settings: their places and keys, never a value.
func (r *reloader) logFindings(err error) {
	r.logger.Error("settings not read again, the old ones hold", fault.LogAttr(err))
	for _, finding := range fault.Public(err).Findings {
		r.logger.Error("setting is wrong", "file", finding.File, "line", finding.Line)
	}
}
