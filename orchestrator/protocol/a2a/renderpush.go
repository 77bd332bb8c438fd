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

// RenderPush makes the body that tells of an event of a run: a stream response of version 1.0. Of
// the end it is the task with all that its run gave. Without a body there is nothing to tell.
func (s *Server) RenderPush(ctx context.Context, run string, event api.Event) (body []byte, kind string, err error) {
	h := handler{s}
	record, err := s.svc.Get(ctx, run)
	if err != nil {
		return nil, "", err
	}
	c := &call{base: s.ownBase()}
	var told sdk.Event
	if event.Type == api.EventEnd {
		s.passed.take(run)
		none := 0
		told, err = h.task(ctx, c, record, shown{history: &none, artifacts: true})
	} else {
		told, err = h.toldOf(ctx, c, record, event)
	}
	if err != nil || told == nil {
		return nil, "", err
	}
	body, err = json.Marshal(sdk.StreamResponse{Event: told})
	return body, httpwire.TypeJSON, err
}

// toldOf is what the subscribers of a task are told of an event before its end; nil: nothing.
func (h handler) toldOf(ctx context.Context, c *call, record api.Record, event api.Event) (sdk.Event, error) {
	v := h.passed.take(record.ID)
	if v == nil || v.seq >= event.Seq {
		bare := api.Record{
			ID: record.ID, Unit: record.Unit, Session: record.Session, Context: record.Context,
			CreatedAt: record.CreatedAt,
		}
		v = &view{handler: h, call: c, record: bare, task: newTask(bare)}
	}
	if err := v.passUntil(ctx, event.Seq); err != nil {
		return nil, err
	}
	v.inline = maxInline
	all, err := v.apply(ctx, event)
	if err != nil || v.ended {
		return nil, err
	}
	h.passed.put(v)
	if len(all) == 0 {
		return nil, nil
	}
	return all[0], nil
}

// passUntil has the events before one of a number change the task.
func (v *view) passUntil(ctx context.Context, seq int64) error {
	if v.seq == seq-1 {
		return nil
	}
	for earlier, err := range v.svc.Past(ctx, v.record.ID, v.seq) {
		if err != nil {
			return err
		}
		if earlier.Seq >= seq {
			break
		}
		if err := v.pass(ctx, earlier); err != nil {
			return err
		}
	}
	return nil
}

// pass has an event change the task as far as later ones are told by it: of an artifact that it is
// there, so that its files needn't be read.
func (v *view) pass(ctx context.Context, event api.Event) error {
	if event.Type != api.EventArtifact {
		_, err := v.apply(ctx, event)
		return err
	}
	data, err := event.Decode()
	if err == nil {
		v.seq = event.Seq
		v.keep(&sdk.Artifact{ID: sdk.ArtifactID(data.(api.ArtifactEvent).ID)}, false, false)
	}
	return err
}

// maxPassed bounds the tasks that are kept between two events of theirs.
const maxPassed = 64

// passed keeps how tasks stood at the events that were told last, so that the next ones needn't be
// told from the beginning. Of content it has no more than the questions that are open.
type passed struct {
	mu    sync.Mutex
	views []*view // the newest last
}

// take returns the task of a run, which isn't kept any more; nil: it wasn't.
func (p *passed) take(run string) *view {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, v := range p.views {
		if v.record.ID == run {
			p.views = slices.Delete(p.views, i, i+1)
			return v
		}
	}
	return nil
}

// put keeps a task.
func (p *passed) put(v *view) {
	v.forget()
	if v.task.Status.State == sdk.TaskStateWorking {
		v.task.Status.Message = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.views) == maxPassed {
		p.views = slices.Delete(p.views, 0, 1)
	}
	p.views = append(p.views, v)
}
