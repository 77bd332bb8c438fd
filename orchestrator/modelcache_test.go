package orchestrator

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

func TestAnAnswerOfAModelIsGivenAgain(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "model_cache: 1h\n")
	ask := func(mark string, a modelAsk) {
		t.Helper()
		w.await(w.submitScript(script{Mark: mark, Asks: []modelAsk{a}}))
	}
	ask("first", modelAsk{})
	id := w.submitScript(script{Mark: "again", Asks: []modelAsk{{}, {Body: `{"messages": [{"content": "What is the colour of the sky?", "role": "user"}], "model": "m"}`}}})
	record := w.await(id)
	if w.double.requests() != 1 || !cmp.Equal(w.answers["again"], []string{w.answers["first"][0], w.answers["first"][0]}) {
		t.Errorf("%d requests: %q", w.double.requests(), w.answers)
	}
	calls, err := models.ReadCalls(w.service.runPath(id))
	if err != nil || len(calls) != 2 || calls[0].Source != "cache" || calls[0].Charged != 0 || calls[0].Status != 200 || record.Models != nil {
		t.Errorf("%+v %v %+v", calls, err, record.Models)
	}
	ask("other", modelAsk{Said: []string{"and of the sea?"}})
	w.stop()
	w.start()
	ask("later", modelAsk{})
	if n := w.double.requests(); n != 2 || w.answers["later"][0] != w.answers["first"][0] {
		t.Errorf("%d requests: %q", n, w.answers)
	}
	files, err := filepath.Glob(filepath.Join(w.opts.Home, "modelcache", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%q %v", files, err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, file := range files {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	ask("old", modelAsk{})
	write(t, filepath.Join(w.opts.Sources[0], "caller", "agent.yaml"), callerFiles["agent.yaml"]+"model: m\nmodel_cache: 1h\nmax_tokens: 99\n")
	w.stop()
	w.start()
	ask("new version", modelAsk{})
	if n := w.double.requests(); n != 4 {
		t.Errorf("%d requests: %q", n, w.answers)
	}
}

func TestWhatIsNotCached(t *testing.T) {
	t.Parallel()
	fails := func(n int, rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(rw, `{"error":{"message":"%d"}}`, n)
	}
	for name, c := range map[string]struct {
		agent  string
		answer func(int, http.ResponseWriter, *http.Request)
		set    func(*settings)
	}{
		"unless the unit says so":    {},
		"a failure":                  {agent: "model_cache: 1h\n", answer: fails},
		"without transcripts":        {agent: "model_cache: 1h\ntranscript: false\n"},
		"of an operator without any": {agent: "model_cache: 1h\n", set: func(o *settings) { o.Models.Transcript = false }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld(t, c.agent, func(o *settings) {
				if c.set != nil {
					c.set(o)
				}
			})
			w.double.answer = c.answer
			w.await(w.submitScript(script{Mark: "a", Asks: asks(2)}))
			if n := w.double.requests(); n != 2 || exists(w.opts.Home, "modelcache") {
				t.Errorf("%d requests, or files", n)
			}
		})
	}
}
