package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/web"
)

// fleet are the workers of a server.
type fleet struct {
	mu  sync.Mutex
	all []api.Worker
}

// newFleet has a worker of each state.
func newFleet() *fleet {
	seen, soon := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Now().Add(time.Hour)
	return &fleet{all: []api.Worker{
		{Name: "big", State: api.WorkerConnected, Version: "1.4.0", Slots: 8, Running: 3, Labels: []string{"gpu", "zone=b"}, SeenAt: &seen},
		{Name: "gone", State: api.WorkerLost, Drained: true, Version: "1.3.9", Slots: 2, SeenAt: &seen},
		{Name: "hers", State: api.WorkerInvited, ExpiresAt: &soon},
		{Name: "his", State: api.WorkerInvited, ExpiresAt: &seen},
		{Name: strings.Repeat("long-", 12), State: api.WorkerAway, Version: "<b>1.4.0", Slots: 1, Running: 1, Labels: []string{strings.Repeat("label", 12)}, SeenAt: &seen},
		{Name: "small", State: api.WorkerConnected, Drained: true, Version: "1.4.0", Slots: 1, SeenAt: &seen},
	}}
}

// List implements web.Workers, as does Drain.
func (f *fleet) List(context.Context) ([]api.Worker, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all), nil
}

func (f *fleet) Drain(_ context.Context, name string, drained bool) (api.Worker, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, w := range f.all {
		if w.Name == name {
			f.all[i].Drained = drained
			return f.all[i], nil
		}
	}
	return api.Worker{}, fault.New(fault.NotFound, "there is no worker %q", name)
}

// drained are the workers that take nothing new.
func (f *fleet) drained() (names []string) {
	all, _ := f.List(context.Background())
	for _, w := range all {
		if w.Drained {
			names = append(names, w.Name)
		}
	}
	return names
}

func TestOperationsListTheWorkers(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	shown := p.get("/ui/operations").wants(t, 200, "Connected", "3 of 8", ">gpu<", ">zone=b<", "1.4.0", "&lt;b&gt;1.4.0", "Lost",
		"Invited", "Invitation expired", "Away", "Drained", ">now<", "03:04:05", ">never<", `action="./workers/big/drain"`, `action="./workers/small/undrain"`).
		lacks(t, "workers/hers/", "workers/big/undrain", "workers/small/drain", "<b>1.4.0").body
	p.get("/ui/live?page=operations&once=true").wants(t, 200, `"key":"workers"`)
	if n := strings.Count(shown, ">Drained<"); n != 1 {
		t.Errorf("%d workers are drained: %s", n, shown)
	}
	p.signIn(access.Read)
	p.get("/ui/operations").wants(t, 200, "3 of 8").lacks(t, "/drain", "/undrain")
	p.post("/ui/workers/big/drain").wants(t, 403)

	t.Run("but not to a team", func(t *testing.T) {
		p.signInAs("a").get("/ui/operations").wants(t, 200).lacks(t, "3 of 8", "h-workers")
		p.post("/ui/workers/big/drain").wants(t, 403, "whole server")
		if got := p.fleet.drained(); fmt.Sprint(got) != "[gone small]" {
			t.Errorf("%q are drained", got)
		}
	})
	t.Run("nor where there are none", func(t *testing.T) {
		p.fleet.mu.Lock()
		p.fleet.all = nil
		p.fleet.mu.Unlock()
		p.signIn().get("/ui/operations").wants(t, 200).lacks(t, "h-workers")
	})
}

func TestOperationsListAsManyWorkersAsPeopleRead(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	for n := range 1000 {
		p.fleet.all = append(p.fleet.all, api.Worker{Name: fmt.Sprint("w", n), State: api.WorkerConnected})
	}
	p.get("/ui/operations").wants(t, 200, "906 more", "aod worker ls", "workers/w93/drain").lacks(t, "workers/w94/drain")
}

func TestAWorkerIsDrainedOnThePage(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	for range 2 {
		p.post("/ui/workers/big/drain").leads(t, "../../operations")
	}
	p.get("/ui/operations").wants(t, 200, "workers/big/undrain")
	p.post("/ui/workers/small/undrain").leads(t, "../../operations")
	if got := p.fleet.drained(); fmt.Sprint(got) != "[big gone]" {
		t.Errorf("%q are drained", got)
	}
	p.post("/ui/workers/nobody/drain").wants(t, 404)
	told, err := p.svc.Audit.List(trusted.Context(t), api.AuditFilter{Limit: 10})
	must(t, err)
	var did []string
	for _, e := range told.Entries {
		did = append(did, e.Verb+" "+e.Noun+" "+e.Object)
	}
	if got := strings.Join(did, ", "); !strings.Contains(got, "undrain worker small, drain worker big, drain worker big") || strings.Contains(got, "nobody") {
		t.Errorf("the audit has %s", got)
	}
}

func TestAServerWithoutWorkersHasNoPageOfThem(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	without, err := web.New(p.svc, web.Options{NoAuth: true})
	must(t, err)
	for _, route := range without.Routes() {
		if strings.Contains(route.Pattern, "/ui/workers") {
			t.Error(route.Pattern)
		}
	}
}
