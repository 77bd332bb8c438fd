package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

func TestARestartBeforeAModelCallChangesNothing(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{}, {After: "go"}}})
	within(t, func() bool { return len(w.told("a")) == 1 }, func() string { return "no answer" })
	w.stop()
	w.start()
	w.open("go")
	record := w.await(id)
	if m := record.Models; record.Outcome != api.Success || m == nil || m.Calls != 2 || m.Charged != 20 || m.Estimated != 0 {
		t.Errorf("%+v", record.Models)
	}
	w.wantCalls(id, 2)
}

// The books say of a request that was under way as much as it could have cost.
func TestARequestThatARestartCutOffIsChargedInFull(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	release := w.double.holds()
	defer release()
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{Key: "one"}}})
	within(t, func() bool { return w.double.now() == 1 }, func() string { return "nobody asks" })
	_, worst := w.models().Spent(id)
	w.stop()
	release()
	w.start()
	record := w.await(id)
	m := record.Models
	if record.Outcome != api.Success || !cmp.Equal(w.told("a"), times("200", 1)) {
		t.Fatalf("%q: %s", w.answers["a"], show(record))
	}
	if m == nil || m.Estimated != 1 || m.Charged != worst.Tokens+billedEach || int64(m.Cost) != worst.Cost+billedEach*1000 || m.Tokens.Input != 7 {
		t.Errorf("%+v, of which %+v in full", m, worst)
	}
	if paid := int64(w.double.requests()) * billedEach; m.Charged < paid {
		t.Errorf("%d were paid, %d charged", paid, m.Charged)
	}
	keepsSchema(t, record)
	w.wantListed(id, m)
}

// wantListed wants the calls that are listed with a run to be those in its record.
func (w *modelWorld) wantListed(id string, want *api.ModelUsage) {
	w.t.Helper()
	kept, err := models.ReadCalls(w.service.runPath(id))
	if err != nil {
		w.t.Fatal(err)
	}
	var told []api.ModelCall
	for _, event := range w.events(id, 0) {
		if data, _ := event.Decode(); event.Type == api.EventModel {
			told = append(told, data.(api.ModelCall))
		}
	}
	if diff := cmp.Diff(kept, told); diff != "" {
		w.t.Error("the events are others: ", diff)
	}
	sum := api.ModelUsage{Tree: want.Tree}
	for i, c := range kept {
		if sum.Add(c); c.N != int64(i+1) || c.Model != "m" || c.Provider == "" {
			w.t.Errorf("call %d: %+v", i+1, c)
		}
	}
	if diff := cmp.Diff(*want, sum); diff != "" {
		w.t.Errorf("%+v: %s", kept, diff)
	}
}

// An attempt whose answer broke off may be charged, and so may the next one, which a restart
// cuts off.
func TestTheAttemptsOfACallAreOneCall(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"in one process": false, "across a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld(t, "")
			second := make(chan struct{})
			w.double.answer = func(n int, rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				switch {
				case n == 1:
					rw.Header().Set("Content-Length", "100")
					fmt.Fprint(rw, "{")
					return
				case n == 2 && restart:
					close(second)
					<-r.Context().Done()
					return
				}
				fmt.Fprint(rw, `{"choices":[{}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
			}
			id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{Key: "one"}}})
			want := int64(1)
			if restart {
				<-second
				w.stop()
				w.start()
				want = 2
			}
			record := w.await(id)
			m := record.Models
			if m == nil || m.Calls != want || m.Estimated != 1 || m.Tokens.Input != 7 {
				t.Fatalf("%d answers, %+v", len(w.told("a")), m)
			}
			w.wantListed(id, m)
		})
	}
}

// A process that died had no time to say so.
func TestWhatADeadProcessSetAsideCountsInTheWholeTree(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "budgets: {tokens: 2000}\n")
	leaf := script{Mark: "leaf", Asks: []modelAsk{{After: "go"}, {}}}
	root := w.submitScript(script{Mark: "root", Asks: asks(1), Calls: []script{leaf}, Until: "end"})
	var callee string
	within(t, func() bool {
		if w.starts("leaf") == 1 {
			callee = w.callee(root)
		}
		return callee != ""
	}, func() string { return "no call" })
	w.stop()
	w.setAside(callee, `{"id":"x"}`, store.ModelCall{Tokens: 300, Settled: true, Estimated: true})
	w.setAside(callee, `{"id":"y"}`, store.ModelCall{Tokens: 5, Settled: true})
	w.setAside(callee, `{"id":"x","again":true}`, store.ModelCall{Tokens: 1600})
	w.start()
	w.open("go")
	w.open("end")
	record := w.await(root)
	leafs := w.await(callee)
	// 2000 are in the root's budget; 10 + 1900 + 5 are gone, and a request can take 1209.
	if got := w.told("leaf"); !cmp.Equal(got, times("402", 2)) {
		t.Errorf("%q", w.answers["leaf"])
	}
	w.wantTree(record, 10, 1915)
	if m := leafs.Models; m == nil || m.Charged != 1905 || m.Calls != 2 || m.Estimated != 1 {
		t.Errorf("%+v", m)
	}
	listed, err := models.ReadCalls(w.service.runPath(callee))
	if err != nil || len(listed) != 4 || listed[0].Charged != 1900 || !listed[0].Estimated || listed[0].Attempts != 2 || listed[1].Charged != 5 || listed[1].Estimated {
		t.Errorf("%+v %v", listed, err)
	}
}

// callee returns the latest run that a run called, "" while there is none.
func (w *modelWorld) callee(id string) string {
	page, err := w.service.store.Runs.List(trusted.Context(w.t), store.Filter{Parent: id})
	if err != nil || len(page.Runs) == 0 {
		return ""
	}
	return page.Runs[0].ID
}

// setAside writes to the books of a service that is down.
func (w *modelWorld) setAside(id, data string, row store.ModelCall) {
	w.t.Helper()
	s, err := w.opts.service(w.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	row.At, row.Cost, row.Data = time.Now(), row.Tokens*1000, []byte(data)
	if row.N, err = s.store.ModelCalls.Add(trusted.Context(w.t), id, row); err != nil {
		w.t.Fatal(err)
	}
	if row.Settled {
		if err := s.store.ModelCalls.Save(trusted.Context(w.t), id, row); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func TestAnAnsweredCallIsNeverPaidTwice(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	again := modelAsk{Key: "one", After: "go"}
	other := modelAsk{Key: "one", Said: []string{"something else"}}
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{Key: "one"}, again, other}})
	within(t, func() bool { return len(w.told("a")) == 1 }, func() string { return "no answer" })
	w.stop()
	w.start()
	w.open("go")
	record := w.await(id)
	if w.double.requests() != 1 || w.answers["a"][0] != w.answers["a"][1] || !cmp.Equal(w.told("a"), []string{"200", "200", "422"}) {
		t.Errorf("%d requests, %q", w.double.requests(), w.answers["a"])
	}
	if m := record.Models; m == nil || m.Calls != 1 || m.Charged != billedEach {
		t.Errorf("%+v", m)
	}
	if exists(w.service.runPath(id), "answers") {
		t.Error("the answers are left")
	}
}

// onMessage has a logger do something before it goes on.
type onMessage struct {
	slog.Handler
	message string
	do      func(slog.Record)
}

func (h onMessage) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.do(r)
	}
	return h.Handler.Handle(ctx, r)
}

// A caller goes on as soon as its process is back, and others below it may have spent.
func TestNoRecoveredRunGoesOnBeforeAllSpendingIsKnown(t *testing.T) {
	t.Parallel()
	var w *modelWorld
	recovered, early := 0, false
	handler := onMessage{slog.NewTextHandler(io.Discard, nil), "run recovered", func(slog.Record) {
		recovered++
		early = early || driven(t)
	}}
	w = newModelWorld(t, "budgets: {tokens: 2000}\n", func(o *settings) { o.Logger = slog.New(handler) })
	root := w.submitScript(script{
		Mark: "root", AtOnce: true, Asks: []modelAsk{{After: "go"}},
		Calls: []script{{Mark: "one", Until: "end"}, {Mark: "two", Until: "end"}},
	})
	within(t, func() bool { return w.programs() == 3 }, func() string { return "not all run" })
	last := w.callee(root)
	w.stop()
	w.setAside(last, `{"id":"x"}`, store.ModelCall{Tokens: 1950})
	recovered, early = 0, false
	w.open("go")
	pprof.Do(trusted.Context(t), pprof.Labels("test", t.Name()), func(context.Context) { w.start() })
	if recovered != 3 || early {
		t.Errorf("%d are recovered, and one went on before the others were known: %v", recovered, early)
	}
	w.open("end")
	w.await(root)
	if got := w.told("root"); got[0] != "200" || got[2] != "402" || w.double.requests() > 0 {
		t.Errorf("%q", w.answers["root"])
	}
}

// driven reports whether a job is driven that the test started under its label: other tests drive theirs beside it.
func driven(t *testing.T) bool {
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Error(err)
	}
	for _, goroutine := range strings.Split(text.String(), "\n\n") {
		if strings.Contains(goroutine, t.Name()) && strings.Contains(goroutine, "(*job).drive") {
			return true
		}
	}
	return false
}

// Who races is one call, whichever wins, and what the loser was sent is charged in full.
func TestTheRacersOfACallAreOneCall(t *testing.T) {
	t.Parallel()
	for winner, want := range map[string]string{"one": "two", "two": "one"} {
		t.Run(winner, func(t *testing.T) {
			t.Parallel()
			both := make(chan struct{})
			double := newModelDouble(t)
			double.answer = func(n int, rw http.ResponseWriter, r *http.Request) {
				if n == 2 {
					close(both)
				}
				<-both
				if !strings.HasPrefix(r.URL.Path, "/"+winner) {
					<-r.Context().Done()
					return
				}
				rw.Header().Set("Content-Type", "application/json")
				fmt.Fprint(rw, `{"choices":[{}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
			}
			w := newModelWorld(t, "", func(o *settings) {
				known := double.catalog()
				m := known.Models["m"]
				m.Order, m.Use = catalog.Race, nil
				for _, name := range []string{"one", "two"} {
					known.Providers[name] = catalog.Provider{Kind: catalog.Compatible, BaseURL: double.URL + "/" + name, AnyField: true, Dialects: catalog.Dialects()}
					m.Use = append(m.Use, catalog.Use{Provider: name, Model: "up"})
				}
				known.Models["m"] = m
				gw, err := gateway.New(known, gateway.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(gw.Close)
				o.Models.Gateway = gw
			})
			id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{}}})
			m := w.await(id).Models
			if m == nil || m.Calls != 1 || m.Estimated != 1 || m.Tokens.Input != 7 || m.Charged <= 100 {
				t.Fatalf("%+v", m)
			}
			w.wantListed(id, m)
			if calls, err := models.ReadCalls(w.service.runPath(id)); err != nil || calls[0].Provider != winner || calls[0].Raced != want || calls[0].Attempts != 2 {
				t.Errorf("%+v, %v", calls, err)
			}
		})
	}
}
