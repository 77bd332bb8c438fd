package web

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
)

func (p *Page) addWebhooks() {
	kept, is := orchestrator.FeatureOf[*webhooks.Feature](p.svc)
	if !is {
		return
	}
	w := receivers{p, kept}
	p.page("/ui/webhooks", w.list)
	p.run("POST /ui/webhooks/{id}/test", w.test)
	p.run("POST /ui/webhooks/{id}/remove", w.remove)
}

// receivers is the page of those who are told of runs.
type receivers struct {
	*Page
	kept *webhooks.Feature
}

// webhookView is a webhook as the page shows it.
type webhookView struct{ api.Webhook }

// Is is how it stands.
func (v webhookView) Is() state {
	switch v.State {
	case api.WebhookGivenUp:
		return state{"bad", "Given up"}
	case api.WebhookFailing:
		return state{"late", "Failing"}
	}
	return state{"ok", "Active"}
}

// Tells are the events of which it tells.
func (v webhookView) Tells() string { return strings.Join(v.Events, ", ") }

// Last is what became of the last try; "": there was none.
func (v webhookView) Last() string { return triedText(v.Outcome, v.Status) }

func triedText(outcome string, status int) string {
	if status > 0 {
		return fmt.Sprintf("%s, %d", outcome, status)
	}
	return outcome
}

// webhookList is a page of the webhooks.
type webhookList struct {
	Rows  []webhookView
	Next  int64
	Later bool
	Note  string // what a test came to; "": there was none
}

func (p receivers) list(r *request) (content, error) { return p.listed(r, "") }

func (p receivers) listed(r *request, note string) (content, error) {
	before := numberOf(r, "before")
	page, err := p.kept.List(r.Context(), before, 0)
	list := webhookList{Later: before > 0, Next: behind(page.Next), Note: note}
	for _, w := range page.Webhooks {
		list.Rows = append(list.Rows, webhookView{w})
	}
	return content{
		title: "Webhooks", section: "operations", follow: every(5 * time.Second),
		parts: []part{{"head", "webhooks-head", nil}, {"rows", "webhooks-rows", list}},
	}, err
}

// test makes a request to a receiver now, and shows what became of it.
func (p receivers) test(w http.ResponseWriter, r *request) error {
	done, err := p.kept.Test(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	shown, err := p.listed(r, triedText(done.Outcome, done.Status))
	if err != nil {
		return err
	}
	shown.follow = nil // the result stays
	p.show(w, r, http.StatusOK, shown)
	return nil
}

// remove has a receiver hear nothing more. A webhook that is gone isn't an error to whoever sends the form twice.
func (p receivers) remove(w http.ResponseWriter, r *request) error {
	if err := p.kept.Delete(r.Context(), r.PathValue("id")); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	redirect(w, "../../webhooks")
	return nil
}
