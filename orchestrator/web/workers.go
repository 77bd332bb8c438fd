package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
)

// Workers are the machines that take runs from the server.
type Workers interface {
	List(ctx context.Context) ([]api.Worker, error)
	// Drain has one take nothing new, or has it do so again.
	Drain(ctx context.Context, name string, drained bool) (api.Worker, error)
}

func (p *Page) addWorkers() {
	if p.opts.Workers == nil {
		return
	}
	m := machines{p}
	p.handle("POST /ui/workers/{name}/drain", access.Admin, m.drain("drain", true))
	p.handle("POST /ui/workers/{name}/undrain", access.Admin, m.drain("undrain", false))
}

// machines is what the page of how a server fares has of its workers.
type machines struct{ *Page }

// mostWorkers is how many are shown.
const mostWorkers = 100

// workerList is what is shown of the workers.
type workerList struct {
	Rows    []workerRow // by name
	More    int         // workers that aren't shown
	Managed bool        // by whoever looks at the page
}

// workerRow is a worker.
type workerRow struct {
	api.Worker
	expired bool // nobody can join as it any more
}

// Is is whether it takes runs.
func (r workerRow) Is() state {
	switch {
	case r.expired:
		return state{"off", "Invitation expired"}
	case r.State == api.WorkerInvited:
		return state{"queue", "Invited"}
	case r.State == api.WorkerLost:
		return state{"bad", "Lost"}
	case r.State == api.WorkerAway:
		return state{"late", "Away"}
	case r.Drained:
		return state{"off", "Drained"}
	case r.Node != "":
		return state{"off", "Node " + r.Node}
	case r.DiskFull:
		return state{"off", "Disk full"}
	}
	return state{"ok", "Connected"}
}

// IsThere reports whether it is connected now.
func (r workerRow) IsThere() bool { return r.State == api.WorkerConnected }

// Taken is how many of its slots have runs.
func (r workerRow) Taken() string {
	if r.Slots == 0 && r.Running == 0 {
		return none
	}
	return fmt.Sprintf("%d of %d", r.Running, r.Slots)
}

// list are the workers for those who may know how the whole server fares.
func (p machines) list(ctx context.Context, now time.Time) (list workerList, err error) {
	if p.opts.Workers == nil || !p.svc.Figures.Whole(ctx) {
		return list, nil
	}
	all, err := p.opts.Workers.List(ctx)
	list.More = max(0, len(all)-mostWorkers)
	list.Managed = p.manage(ctx) == nil
	for _, w := range all[:len(all)-list.More] {
		expired := w.State == api.WorkerInvited && w.ExpiresAt != nil && !now.Before(*w.ExpiresAt)
		list.Rows = append(list.Rows, workerRow{w, expired})
	}
	return list, err
}

// manage returns a Forbidden fault for those who don't manage the whole server.
func (machines) manage(ctx context.Context) error {
	if access.May(ctx, access.Admin) && access.ReachOf(ctx).All {
		return nil
	}
	return fault.New(fault.Forbidden, "the workers are the whole server's").
		WithHint("ask its operator, or use a token with the scope admin and without a team")
}

// drain has a worker take nothing new, or has it do so again.
func (p machines) drain(verb string, drained bool) handler {
	return func(w http.ResponseWriter, r *request) error {
		ctx, name := r.Context(), r.PathValue("name")
		if err := p.manage(ctx); err != nil {
			return err
		}
		if _, err := p.opts.Workers.Drain(ctx, name, drained); err != nil {
			return err
		}
		if err := p.svc.Audit.Did(ctx, verb, "worker", name); err != nil {
			return err
		}
		redirect(w, "../../operations")
		return nil
	}
}
