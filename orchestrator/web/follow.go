package web

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// followRoots calls changed for each change of a run that nobody called.
func (p *Page) followRoots(ctx context.Context, changed func()) { p.poll(ctx, changed) }

// followRun calls changed for each change of a run and of those below it, and for all that happens in it.
func (p *Page) followRun(ctx context.Context, of api.Record, changed func()) {
	for {
		news, more := p.svc.Feed.Next(of.ID)
		changed()
		if !more {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

func (p *Page) poll(ctx context.Context, changed func()) {
	for {
		select {
		case <-time.After(time.Second):
			changed()
		case <-ctx.Done():
			return
		}
	}
}
