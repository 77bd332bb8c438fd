package web

import (
	"context"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// What is shown of what is said at the moment: the last of it, in bytes, and of so many events.
const mostSaid, mostTold = 32 << 10, 400

// saysOf is what is said in a run that goes on, so far: what its program tells, and what a model says to it now.
func saysOf(ctx context.Context, svc *orchestrator.Service, id string) string {
	last, err := svc.Feed.Last(ctx, id)
	if err != nil {
		return ""
	}
	var said strings.Builder
	for e, err := range svc.Feed.Past(ctx, id, max(0, last.Seq-mostTold)) {
		if err != nil {
			break // the next look tells
		}
		data, _ := e.Decode() // what isn't known says nothing
		if told, is := data.(api.AgentEvent); is && told.Kind == api.AgentText {
			said.WriteString(told.Text)
		}
	}
	if asked, is := orchestrator.FeatureOf[*models.Feature](svc); is {
		for _, words := range asked.Said(id) {
			if words.Kind == api.AgentText && (words.Field == "" || words.Field == "text") {
				said.WriteString(words.Text)
			}
		}
	}
	text := said.String()
	if over := len(text) - mostSaid; over > 0 {
		text = "…" + strings.ToValidUTF8(text[over:], "")
	}
	return cleaned(text)
}

// saysIn is the part of a run's page that shows it; none where nothing is said.
func saysIn(ctx context.Context, svc *orchestrator.Service, id string) []part {
	says := saysOf(ctx, svc, id)
	if says == "" {
		return nil
	}
	return []part{{"says", "run-says", says}}
}

// followSays calls changed whenever a model says something to a run, until ctx ends.
func followSays(ctx context.Context, svc *orchestrator.Service, id string, changed func()) {
	asked, is := orchestrator.FeatureOf[*models.Feature](svc)
	if !is {
		return
	}
	said := asked.Follow(id)
	defer said.Close()
	for {
		select {
		case <-said.News:
			said.Take() // the page looks at all there is
			changed()
		case <-ctx.Done():
			return
		}
	}
}

// followTurns calls changed for each change of a session or a conversation, whose turns a filter finds, and for what is
// said in the turn that goes on.
func (p chats) followTurns(ctx context.Context, of api.Filter, changed func()) {
	turns := make(chan struct{}, 1)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		p.followSessions(ctx, func() {
			changed()
			select {
			case turns <- struct{}{}:
			default: // it is known
			}
		})
	})
	heard, hush := "", func() {}
	defer func() { hush() }()
	for ctx.Err() == nil {
		var news <-chan struct{} // nothing comes where no turn goes on
		turn := p.turnOf(ctx, of)
		if of.Session == "" && turn != heard { // also of none, in which nothing is said; a session tells itself
			hush()
			heard, hush = turn, p.hear(ctx, turn, changed)
		}
		if turn != "" {
			next, more := p.svc.Feed.Next(turn)
			if more {
				news = next
			}
		}
		changed()
		select {
		case <-news:
		case <-turns:
		case <-ctx.Done():
		}
	}
}

// hear is followSays beside its caller, until stop, which waits for its end.
func (p chats) hear(ctx context.Context, id string, changed func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var one sync.WaitGroup
	one.Go(func() { followSays(ctx, p.svc, id, changed) })
	return func() {
		cancel()
		one.Wait()
	}
}

// turnOf is the turn that goes on; "" where none does.
func (p chats) turnOf(ctx context.Context, of api.Filter) string {
	of.Active, of.Limit = true, 1
	page, err := p.svc.Runs.List(ctx, of)
	if err != nil || len(page.Runs) == 0 {
		return ""
	}
	return page.Runs[0].ID
}
