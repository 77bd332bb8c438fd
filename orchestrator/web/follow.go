package web

import (
	"context"
	"sync"

	"github.com/agent-on-demand/aod/api"
)

// followRoots calls changed for each change of a run that nobody called.
func (p *Page) followRoots(ctx context.Context, changed func()) {
	p.followNews(ctx, api.NewsFilter{Nouns: []api.NewsNoun{api.NewsRun, api.NewsQuestion}, Roots: true}, changed)
}

// followSessions calls changed for each change of a session, of its runs, and of what these ask.
func (p *Page) followSessions(ctx context.Context, changed func()) {
	p.followNews(ctx, api.NewsFilter{Nouns: []api.NewsNoun{api.NewsSession, api.NewsRun, api.NewsQuestion}}, changed)
}

// followNews calls changed for what a filter selects. What changed before is told at once: the page is a little older.
func (p *Page) followNews(ctx context.Context, of api.NewsFilter, changed func()) {
	for _, err := range p.svc.News.Follow(ctx, of, api.FromNow) {
		if err != nil {
			return // ctx has ended, or the store fails, which the next look tells
		}
		changed()
	}
}

// followRun calls changed for each change of a run and of those below it, and for all that happens and is said in it.
func (p *Page) followRun(ctx context.Context, of api.Record, changed func()) {
	var below sync.WaitGroup
	defer below.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	below.Go(func() { p.followNews(ctx, api.NewsFilter{Root: of.Root}, changed) })
	below.Go(func() { followSays(ctx, p.svc, of.ID, changed) })
	for {
		news, more := p.svc.Feed.Next(of.ID)
		changed()
		if !more {
			below.Wait() // its calls may end after it
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}
