package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

// Workers are the machines that take runs from the server.
type Workers interface {
	List(ctx context.Context) ([]api.Worker, error)
	// Add invites one. What it returns needs no address of the server.
	Add(ctx context.Context, name string) (api.WorkerJoin, error)
	// Drain has one take nothing new, or has it do so again.
	Drain(ctx context.Context, name string, drained bool) (api.Worker, error)
	// Remove revokes what one has joined with.
	Remove(ctx context.Context, name string) error
}

// workerHandlers let who manages the whole server manage its workers.
type workerHandlers struct {
	svc     *orchestrator.Service
	workers Workers // nil: the server takes none
}

// known are the server's workers.
func (h workerHandlers) known() (Workers, error) {
	if h.workers == nil {
		return nil, fault.New(fault.NotFound, "this server takes no workers").
			WithHint("units run on its own machine")
	}
	return h.workers, nil
}

// managed are the server's workers for who manages the whole server.
func (h workerHandlers) managed(ctx context.Context) (Workers, error) {
	if !access.ReachOf(ctx).All {
		return nil, fault.New(fault.Forbidden, "the workers are the whole server's").
			WithHint("ask its operator, or use a token with the scope admin and without a team")
	}
	return h.known()
}

// workerName returns the name of a worker in the path.
func workerName(c echo.Context) (string, error) { return param(c, "name") }

func (h workerHandlers) list(c echo.Context) error {
	ctx := c.Request().Context()
	if err := h.svc.Figures.CheckWhole(ctx); err != nil {
		return err
	}
	workers, err := h.known()
	if err != nil {
		return err
	}
	all, err := workers.List(ctx)
	return replied(c, map[string][]api.Worker{"workers": append([]api.Worker{}, all...)}, err)
}

// demand answers how many runs wait for machines, for who starts and ends machines.
func (h workerHandlers) demand(c echo.Context) error {
	err := h.svc.Figures.CheckWhole(c.Request().Context())
	return replied(c, map[string][]api.Demand{"demand": h.svc.Demand()}, err)
}

// add invites a worker. The token of the invitation is in this answer, and in no other one.
func (h workerHandlers) add(c echo.Context) error {
	var name string
	if err := readObject(c, httpwire.SmallBody, member{"name", &name}); err != nil {
		return err
	}
	ctx := c.Request().Context()
	workers, err := h.managed(ctx)
	if err != nil {
		return err
	}
	join, err := workers.Add(ctx, name)
	if err = h.did(ctx, err, "add", name); err != nil {
		return err
	}
	return reply(c, http.StatusCreated, join)
}

// draining has a worker take nothing new, or has it do so again.
func (h workerHandlers) draining(drained bool) func(context.Context, string) (api.Worker, error) {
	verb := "undrain"
	if drained {
		verb = "drain"
	}
	return func(ctx context.Context, name string) (api.Worker, error) {
		workers, err := h.managed(ctx)
		if err != nil {
			return api.Worker{}, err
		}
		worker, err := workers.Drain(ctx, name, drained)
		return worker, h.did(ctx, err, verb, name)
	}
}

func (h workerHandlers) remove(c echo.Context, name string) error {
	ctx := c.Request().Context()
	workers, err := h.managed(ctx)
	if err != nil {
		return err
	}
	if err := h.did(ctx, workers.Remove(ctx, name), "remove", name); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// did has the audit know of a change, unless that failed.
func (h workerHandlers) did(ctx context.Context, err error, verb, name string) error {
	if err != nil {
		return err
	}
	return h.svc.Audit.Did(ctx, verb, "worker", name)
}
