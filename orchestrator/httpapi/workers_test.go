package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// fakeWorkers are workers that do nothing.
type fakeWorkers struct {
	mu  sync.Mutex
	all map[string]api.Worker
}

func (f *fakeWorkers) List(context.Context) ([]api.Worker, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.all), func(a, b api.Worker) int { return strings.Compare(a.Name, b.Name) }), nil
}

func (f *fakeWorkers) Add(_ context.Context, name string) (api.WorkerJoin, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.all[name]; taken {
		return api.WorkerJoin{}, fault.New(fault.Conflict, "there is a worker %q", name)
	}
	until := time.Now().Add(time.Hour).UTC()
	f.all[name] = api.Worker{Name: name, State: api.WorkerInvited, ExpiresAt: &until}
	return api.WorkerJoin{Name: name, Home: "home", Pins: []string{"sha256/x"}, Token: "aod_TOKEN", ExpiresAt: until}, nil
}

func (f *fakeWorkers) change(name string, do func(api.Worker)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, known := f.all[name]
	if !known {
		return fault.New(fault.NotFound, "there is no worker %q", name)
	}
	do(w)
	return nil
}

func (f *fakeWorkers) Drain(_ context.Context, name string, drained bool) (is api.Worker, err error) {
	err = f.change(name, func(w api.Worker) {
		w.Drained = drained
		f.all[name], is = w, w
	})
	return is, err
}

func (f *fakeWorkers) Remove(_ context.Context, name string) error {
	return f.change(name, func(api.Worker) { delete(f.all, name) })
}

// withWorkers is a server with tokens and some workers.
func withWorkers(t *testing.T, all ...api.Worker) (*server, *access.Tokens) {
	t.Helper()
	tokens, fake := access.NewTokens(t.TempDir()+"/tokens.json"), &fakeWorkers{all: map[string]api.Worker{}}
	for _, w := range all {
		fake.all[w.Name] = w
	}
	return newServer(t, func(o *Options) { o.Tokens, o.Workers = tokens, fake }), tokens
}

func TestWorkersAreManagedByAPI(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, _ := withWorkers(t, api.Worker{Name: "small", State: api.WorkerConnected, Version: "1.2.3", Slots: 2, Running: 1, MemoryBytes: 7, Labels: []string{"gpu"}, SeenAt: &at})
	answer := s.do("POST", "/v1/workers", `{"name":"big"}`).wants(t, 201)
	join := decode[api.WorkerJoin](t, answer)
	if answer.Header.Get("Cache-Control") != "no-store" || join.Token != "aod_TOKEN" || join.Home != "home" || strings.Contains(answer.body, "server") {
		t.Errorf("added: %s %v", answer.body, answer.Header)
	}
	list := func() (names []string) {
		for _, w := range decode[struct{ Workers []api.Worker }](t, s.do("GET", "/v1/workers", "").wants(t, 200)).Workers {
			names = append(names, fmt.Sprint(w.Name, " ", w.State, w.Drained, w.Slots, w.Labels))
		}
		return names
	}
	if got := fmt.Sprint(list()); got != "[big invitedfalse 0 [] small connectedfalse 2 [gpu]]" {
		t.Errorf("listed: %s", got)
	}
	s.do("POST", "/v1/workers", `{"name":"big"}`).wants(t, 409)
	s.do("POST", "/v1/workers", `{"name":"x","server":"y"}`).wants(t, 400)
	if w := decode[api.Worker](t, s.do("POST", "/v1/workers/big/drain", "").wants(t, 200)); !w.Drained {
		t.Errorf("drained: %+v", w)
	}
	if w := decode[api.Worker](t, s.do("POST", "/v1/workers/big/undrain", "").wants(t, 200)); w.Drained {
		t.Errorf("not any more: %+v", w)
	}
	s.do("DELETE", "/v1/workers/big", "").wants(t, 204)
	for _, asked := range []string{"POST /v1/workers/big/drain", "POST /v1/workers/big/undrain", "DELETE /v1/workers/big"} {
		method, path, _ := strings.Cut(asked, " ")
		s.do(method, path, "").wants(t, 404)
	}
	var did []string
	for _, row := range decode[api.AuditPage](t, s.do("GET", "/v1/audit?object=big", "").wants(t, 200)).Entries {
		did = append(did, row.Verb+" "+row.Noun)
	}
	if fmt.Sprint(did) != "[remove worker undrain worker drain worker add worker]" {
		t.Errorf("the audit has %q", did)
	}
	s.do("DELETE", "/v1/workers/small", "").wants(t, 204)
	if body := s.do("GET", "/v1/workers", "").wants(t, 200).body; strings.TrimSpace(body) != `{"workers":[]}` {
		t.Errorf("none: %s", body)
	}
	if log := s.log.String(); strings.Contains(log, join.Token) {
		t.Error("the log has the token")
	}
}

func TestWorkersAreTheWholeServers(t *testing.T) {
	t.Parallel()
	s, tokens := withWorkers(t, api.Worker{Name: "big", State: api.WorkerLost})
	team := makes(t, tokens, access.Grant{Name: "boss", Scopes: []access.Scope{access.Admin}, Teams: []string{"a"}})
	narrow := makes(t, tokens, access.Grant{Name: "narrow", Scopes: []access.Scope{access.Read}, Units: []string{"actor"}})
	figures := makes(t, tokens, access.Grant{Name: "figures", Scopes: []access.Scope{access.Metrics}})
	s.do("GET", "/v1/workers", "", figures).wants(t, 200)
	s.do("GET", "/v1/workers", "", narrow).wants(t, 403)
	for _, asked := range []string{"POST /v1/workers", "POST /v1/workers/big/drain", "POST /v1/workers/big/undrain", "DELETE /v1/workers/big"} {
		method, path, _ := strings.Cut(asked, " ")
		body := ""
		if path == "/v1/workers" {
			body = `{"name":"new"}`
		}
		s.do(method, path, body, figures).wants(t, 403)
		for _, headers := range [][]string{{team}, {"Aod-Team: a"}} {
			refused := decode[httpwire.Problem](t, s.do(method, path, body, headers...).wants(t, 403))
			if !strings.Contains(refused.Detail, "whole server's") || !strings.Contains(refused.Hint, "without a team") {
				t.Errorf("%s: %+v", asked, refused)
			}
		}
	}
	if body := s.do("GET", "/v1/workers", "").wants(t, 200).body; strings.TrimSpace(body) != `{"workers":[{"name":"big","state":"lost","running":0}]}` {
		t.Errorf("something was done: %s", body)
	}
}

func TestAServerThatTakesNoWorkers(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for _, asked := range []string{"GET /v1/workers", "POST /v1/workers", "POST /v1/workers/big/drain", "POST /v1/workers/big/undrain", "DELETE /v1/workers/big"} {
		method, path, _ := strings.Cut(asked, " ")
		body := ""
		if asked == "POST /v1/workers" {
			body = `{"name":"new"}`
		}
		if p := decode[httpwire.Problem](t, s.do(method, path, body).wants(t, 404)); p.Detail != "this server takes no workers" {
			t.Errorf("%s: %+v", asked, p)
		}
	}
}

// What a worker has joined with is good for a protocol of workers, which is a Mount, and for nothing else.
func TestAWorkersTokenOpensNothingElse(t *testing.T) {
	t.Parallel()
	tokens := access.NewTokens(t.TempDir() + "/tokens.json")
	s := newServer(t, func(o *Options) {
		o.Tokens = tokens
		o.Mounts = append(o.Mounts, Mount{Patterns: []string{"GET /v1/work/hello"}, Scope: access.Work, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, access.ClientOf(r.Context()))
		})})
	})
	invitation, _, err := tokens.AddWorker("big", time.Now())
	must(t, err)
	worker := bears(invitation)
	if a := s.do("GET", "/v1/work/hello", "", worker).wants(t, 200); a.body != "big" {
		t.Errorf("it is %q", a.body)
	}
	s.do("GET", "/v1/work/hello", "").wants(t, 403) // the server's own token
	for pattern, r := range s.api.routes.known {
		method, path, _ := strings.Cut(pattern, " ")
		if r.scope == public || r.scope == access.Work || strings.Contains(path, "*") || method == http.MethodHead {
			continue
		}
		if a := s.do(method, path, "", worker); a.StatusCode != 403 {
			t.Errorf("%s: %d %s", pattern, a.StatusCode, a.body)
		}
	}
	if me := decode[api.Whoami](t, s.do("GET", "/v1/whoami", "", worker).wants(t, 200)); fmt.Sprint(me.Name, me.Scopes, me.Teams, me.Units) != "big[work] [] []" {
		t.Errorf("it is told %+v", me)
	}
	if a := s.do("GET", "/v1/tokens", "").wants(t, 200); strings.Contains(a.body, "big") {
		t.Errorf("the tokens are %s", a.body)
	}
	for _, asked := range []string{"DELETE /v1/tokens/big", "POST /v1/tokens/big/rotate"} {
		method, path, _ := strings.Cut(asked, " ")
		if p := decode[httpwire.Problem](t, s.do(method, path, "").wants(t, 409)); !strings.Contains(p.Hint, "aod worker rm big") {
			t.Errorf("%s: %+v", asked, p)
		}
	}
	s.do("POST", "/v1/tokens", `{"name":"x","scopes":["work"]}`).wants(t, 422)
	must(t, tokens.RemoveWorker("big"))
	s.do("GET", "/v1/work/hello", "", worker).wants(t, 401)
}
