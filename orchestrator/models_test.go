package orchestrator

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

func TestARunAsksAModel(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	id := w.submitScript(script{Mark: "a", Asks: asks(2)})
	record := w.await(id)
	if got := w.told("a"); !cmp.Equal(got, times("200", 2)) || !strings.Contains(w.answers["a"][0], "Blue, 1.") {
		t.Errorf("answers %q", w.answers["a"])
	}
	want := &api.ModelUsage{Calls: 2, Tokens: api.ModelTokens{Input: 14, Output: 6}, Charged: 20, Cost: 20_000}
	if diff := cmp.Diff(want, record.Models); diff != "" {
		t.Error(diff)
	}
	keepsSchema(t, record)
	w.wantCalls(id, 2)
	for _, metric := range []string{
		`aod_model_requests_total model=m provider=p rule= status=200 2`,
		`aod_model_tokens_total model=m provider=p type=input 14`,
		`aod_model_tokens_total model=m provider=p type=output 6`,
		`aod_model_duration_seconds model=m 2`,
	} {
		if all := w.metrics(); !strings.Contains(all, metric+"\n") {
			t.Errorf("there is no %s:\n%s", metric, all)
		}
	}
	for _, metric := range []string{
		`aod_unit_model_requests_total team=default unit=caller 2`,
		`aod_unit_model_tokens_total team=default type=input unit=caller 14`,
		`aod_unit_model_cost_total team=default unit=caller 2e-05`,
		`aod_team_runs_total outcome=success team=default 1`,
	} {
		if all := w.gathered("aod_unit") + w.gathered("aod_team"); !strings.Contains(all, metric+"\n") {
			t.Errorf("there is no %s:\n%s", metric, all)
		}
	}
	exchange, err := models.ReadExchange(w.service.runPath(id), 1)
	if err != nil || string(exchange.Request) != asks(1)[0].body() || !strings.Contains(string(exchange.Answer), "Blue, 1.") {
		t.Errorf("%s %s %v", exchange.Request, exchange.Answer, err)
	}
	if info, err := os.Stat(w.transcript(id)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// wantCalls wants so many calls with status 200 among the events of a run that is over and in
// its transcript, numbered alike.
func (w *modelWorld) wantCalls(id string, n int) {
	w.t.Helper()
	kept, err := models.ReadCalls(w.service.runPath(id))
	if err != nil || len(kept) != n {
		w.t.Fatalf("%d calls are kept, %v", len(kept), err)
	}
	if diff := cmp.Diff(kept, w.toldCalls(id)); diff != "" {
		w.t.Error(diff)
	}
	for i, c := range kept {
		if c.N != int64(i+1) || c.Model != "m" || c.Provider != "p" || c.Upstream != "up" || c.Source != "provider" || c.Status != 200 || c.Charged != billedEach || c.Estimated {
			w.t.Errorf("call %d: %+v", i+1, c)
		}
	}
}

// toldCalls returns the calls that a run's events tell of, without a prompt.
func (w *modelWorld) toldCalls(id string) (told []api.ModelCall) {
	w.t.Helper()
	for _, event := range w.events(id, 0) {
		if data, _ := event.Decode(); event.Type == api.EventModel {
			told = append(told, data.(api.ModelCall))
			if strings.Contains(string(event.Data), "colour") {
				w.t.Errorf("an event has a prompt: %s", event.Data)
			}
		}
	}
	return told
}

func (w *modelWorld) transcript(id string) string {
	return filepath.Join(w.service.runPath(id), layout.Transcript)
}

func (w *modelWorld) metrics() string { return w.gathered("aod_model") }

func TestWhatARunMayNotAskIsRefusedAndTold(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{Body: `{"model":"other","messages":[]}`}}})
	record := w.await(id)
	calls, err := models.ReadCalls(w.service.runPath(id))
	if err != nil || len(calls) != 1 || calls[0].Status < 400 || calls[0].Rule == "" || record.Models != nil || w.double.requests() > 0 {
		t.Errorf("%+v %v %+v", calls, err, record.Models)
	}
	if all := w.metrics(); strings.Contains(all, "other") || !strings.Contains(all, "model= provider= rule="+calls[0].Rule) {
		t.Errorf("a name that the capsule made up is a label, or nothing is counted:\n%s", all)
	}
}

func TestCallsThatNobodyChargesForAreListedUpToABound(t *testing.T) {
	t.Parallel()
	const listedFree, more, refused = 1000, 7, 5
	w := newModelWorld(t, "model_cache: 1h\n")
	w.await(w.submitScript(script{Mark: "first", Asks: []modelAsk{{}}}))
	s := script{Mark: "a", Asks: make([]modelAsk, listedFree+more)} // its answers are kept
	for i := range refused {
		s.Asks[i].Body = `{"model":"other","messages":[]}`
	}
	s.Asks = append(s.Asks, modelAsk{Said: []string{"something new"}})
	id := w.submitScript(s)
	record := w.await(id)
	calls, err := models.ReadCalls(w.service.runPath(id))
	if err != nil || len(calls) != listedFree+1 || calls[listedFree].Charged != billedEach {
		t.Errorf("%d calls are listed, %v", len(calls), err)
	}
	if m := record.Models; m == nil || m.Calls != 1 || m.Unlisted != more {
		t.Errorf("%+v", m)
	}
	all := w.metrics()
	if !strings.Contains(all, fmt.Sprintf("status=403 %d\n", refused)) && !strings.Contains(all, fmt.Sprintf("status=404 %d\n", refused)) {
		t.Error(all)
	}
	keepsSchema(t, record)
}

func TestAConversationThatGrowsIsKeptOnceAndReadWhole(t *testing.T) {
	t.Parallel()
	const turns = 20
	w := newModelWorld(t, "")
	var said []string
	s := script{Mark: "a"}
	for n := range turns {
		said = append(said, fmt.Sprintf("turn %d: %s", n, strings.Repeat("words ", 500)))
		s.Asks = append(s.Asks, modelAsk{Said: append([]string{}, said...)})
	}
	id := w.submitScript(s)
	w.await(id)
	var asked, kept []string
	for n := range turns {
		exchange, err := models.ReadExchange(w.service.runPath(id), int64(n+1))
		if err != nil {
			t.Fatal(err)
		}
		asked, kept = append(asked, s.Asks[n].body()), append(kept, string(exchange.Request))
	}
	slices.Sort(asked) // the program may have asked again before its question was noted
	slices.Sort(kept)
	if diff := cmp.Diff(asked, kept); diff != "" {
		t.Errorf("%.2000s", diff)
	}
	raw, err := os.ReadFile(w.transcript(id))
	if err != nil || strings.Count(string(raw), "turn 0:") != 1 || len(raw) > 2*turns*3000 {
		t.Errorf("%d bytes, the first turn %d times, %v", len(raw), strings.Count(string(raw), "turn 0:"), err)
	}
}

func TestWithoutATranscriptOnlyFiguresAreKept(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*modelWorld{
		"the unit's":     newModelWorld(t, "transcript: false\n"),
		"the operator's": newModelWorld(t, "", func(o *settings) { o.Models.Transcript = false }),
	} {
		t.Run(name, func(t *testing.T) {
			id := w.submitScript(script{Mark: "a", Asks: asks(2)})
			w.await(id)
			w.wantCalls(id, 2)
			if _, err := models.ReadExchange(w.service.runPath(id), 1); !fault.Is(err, fault.NotFound) {
				t.Error(err)
			}
			for _, word := range []string{"colour of the sky", "Blue, "} {
				if files := filesWith(t, word, w.opts.Home); len(files) > 0 {
					t.Errorf("%q is in %v", word, files)
				}
			}
		})
	}
}

// filesWith returns the files below a directory that have a text in them.
func filesWith(t *testing.T, text, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAFullTranscriptGoesOnWithFiguresAlone(t *testing.T) {
	t.Parallel()
	const most = 16 << 20
	w := newModelWorld(t, "budgets: {tokens: 100000000}\n")
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{Bytes: most / 2}, {Bytes: most/2 + 1}, {}}})
	w.await(id)
	w.wantCalls(id, 3)
	if _, err := models.ReadExchange(w.service.runPath(id), 1); err != nil {
		t.Error(err)
	}
	for n := int64(2); n <= 3; n++ {
		if _, err := models.ReadExchange(w.service.runPath(id), n); !fault.Is(err, fault.NotFound) {
			t.Errorf("call %d: %v", n, err)
		}
	}
	if info, err := os.Stat(w.transcript(id)); err != nil || info.Size() > most {
		t.Errorf("%v %v", info, err)
	}
}

func TestATranscriptIsReadThoughItsLastLineIsTorn(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{{}, {After: "go"}}})
	within(t, func() bool { return len(w.told("a")) == 1 }, func() string { return "no answer" })
	w.stop()
	file, err := safefs.OpenAppend(w.transcript(id))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"n":2,"requ`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if calls, err := models.ReadCalls(w.service.runPath(id)); err != nil || len(calls) != 1 {
		t.Errorf("%+v %v", calls, err)
	}
	w.start()
	w.open("go")
	w.await(id)
	w.wantCalls(id, 2)
	if exchange, err := models.ReadExchange(w.service.runPath(id), 2); err != nil || !json.Valid(exchange.Request) {
		t.Errorf("%+v %v", exchange, err)
	}
}

// A provider that quotes its key, in whatever it says, is heard by nobody.
func TestNoKeyOfAProviderIsSeenAnywhere(t *testing.T) {
	t.Parallel()
	quotes := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"the key %s is wrong"}}`, modelCanary)
		},
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"the key %s is wrong"}}`, modelCanary)
		},
		func(w http.ResponseWriter) {
			w.Header().Set("X-Request-Id", modelCanary)
			fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, modelCanary)
		},
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, modelCanary)
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"error\":{\"message\":\"%s\"}}\n\n", modelCanary)
		},
	}
	var log lockedBuffer
	w := newModelWorld(t, "", func(o *settings) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	kind := -1
	w.double.answer = func(_ int, rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+modelCanary {
			t.Error("the provider doesn't get the key")
		}
		if rw.Header().Set("Content-Type", "application/json"); kind < 0 {
			fmt.Fprint(rw, `{"choices":[{}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
			return
		}
		quotes[kind](rw)
	}
	for kind = range quotes {
		mark := fmt.Sprint("quote", kind)
		id := w.submitScript(script{Mark: mark, Asks: []modelAsk{{Key: mark}}})
		record := w.await(id)
		exchange, err := models.ReadExchange(w.service.runPath(id), 1)
		for what, text := range map[string]string{
			"the answer": fmt.Sprint(w.answers[mark]), "the record": show(record), "the API": fmt.Sprintf("%s %s %v", exchange.Request, exchange.Answer, err),
			"the events": fmt.Sprint(w.events(id, 0)), "the metrics": w.metrics(), "the log": log.String(),
		} {
			if strings.Contains(text, modelCanary) {
				t.Errorf("quote %d: the key is in %s", kind, what)
			}
		}
		if w.told(mark)[0] == "200" {
			t.Errorf("quote %d went through: %s", kind, w.answers[mark])
		}
	}
	if files := filesWith(t, modelCanary, w.opts.Home); len(files) > 0 {
		t.Errorf("the key is in %v", files)
	}
}

// Whoever waits for a model has no slot meanwhile.
func TestRunsThatWaitForAModelLendTheirSlots(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "", func(o *settings) { o.Concurrency = 2 })
	release := w.double.holds()
	defer release()
	var ids []string
	for n := range 10 {
		ids = append(ids, w.submitScript(script{Mark: fmt.Sprint("run", n), Asks: asks(1)}))
	}
	within(t, func() bool { return w.double.now() == 10 }, func() string { return fmt.Sprint(w.double.now(), " ask") })
	release()
	for n, id := range ids {
		if record := w.await(id); record.Outcome != api.Success || !cmp.Equal(w.told(fmt.Sprint("run", n)), times("200", 1)) {
			t.Errorf("record %s", show(record))
		}
	}
}
