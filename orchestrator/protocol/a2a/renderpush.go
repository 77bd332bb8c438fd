package a2a

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// pushRenderer makes the bodies that tell receivers of runs.
type pushRenderer struct {
	tasks tasks
	base  string // of the server's addresses
	kept  projections
}

// render makes the body for an event of a run, as Server.RenderPush says.
func (r *pushRenderer) render(ctx context.Context, run string, event api.Event) (body []byte, kind string, err error) {
	record, err := r.tasks.svc.Get(ctx, run)
	if err != nil {
		return nil, "", err
	}
	c := &call{base: r.base}
	var told sdk.Event
	if event.Type == api.EventEnd {
		r.kept.take(run)
		none := 0
		told, err = r.tasks.show(ctx, c, record, shown{history: &none, artifacts: true})
	} else {
		told, err = r.toldOf(ctx, c, record, event)
	}
	if err != nil || told == nil {
		return nil, "", err
	}
	body, err = json.Marshal(sdk.StreamResponse{Event: told})
	return body, httpwire.TypeJSON, err
}

// toldOf is what the subscribers of a task are told of an event before its end; nil: nothing.
func (r *pushRenderer) toldOf(ctx context.Context, c *call, record api.Record, event api.Event) (sdk.Event, error) {
	p := r.kept.take(record.ID)
	if p == nil || p.seq >= event.Seq {
		bare := api.Record{
			ID: record.ID, Unit: record.Unit, Session: record.Session, Context: record.Context,
			CreatedAt: record.CreatedAt,
		}
		p = r.tasks.newProjection(c, bare)
	}
	if err := p.passUntil(ctx, event.Seq); err != nil {
		return nil, err
	}
	p.files.inline = maxInline
	all, err := p.apply(ctx, event)
	if err != nil || p.ended {
		return nil, err
	}
	r.kept.put(p)
	if len(all) == 0 {
		return nil, nil
	}
	return all[0], nil
}

// maxPassed bounds the tasks that are kept between two events of theirs.
const maxPassed = 64

// projections keep how tasks stood at the events that were told last, so that the next ones needn't be
// told from the beginning. Of content it has no more than the questions that are open.
type projections struct {
	mu  sync.Mutex
	all []*taskProjection // the newest last
}

// take returns the task of a run, which isn't kept any more; nil: it wasn't.
func (k *projections) take(run string) *taskProjection {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range k.all {
		if p.record.ID == run {
			k.all = slices.Delete(k.all, i, i+1)
			return p
		}
	}
	return nil
}

// put keeps a task.
func (k *projections) put(p *taskProjection) {
	p.forget()
	if p.task.Status.State == sdk.TaskStateWorking {
		p.task.Status.Message = nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == maxPassed {
		k.all = slices.Delete(k.all, 0, 1)
	}
	k.all = append(k.all, p)
}
