package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

// Of all bytes that go to a worker and come from it none is of a key of a model or an upstream, of another worker's runs,
// of another one's credential, or of a secret that it may not have.
func TestAWorkerGetsNobodyElsesBytes(t *testing.T) {
	provider := newSlowProvider(t)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Svc-Key") == keyCanary {
			_, _ = io.WriteString(w, "well done")
		}
	}))
	t.Cleanup(service.Close)
	f := fleetOf(t, "1m",
		"providers: {slow: {kind: compatible, base_url: '"+provider.URL+"', key: model-key}}",
		"models: {small: {use: [slow/any], max_output: 50, price: {input: 1, output: 1}}}",
		"upstreams: {svc: {url: '"+service.URL+"', secret: svc-key, header: X-Svc-Key}}",
		"policy: {secrets: [its-secret]}", "worker: {one: {secrets: [its-secret]}}")
	for name, value := range map[string]string{"model-key": thinkerKey, "svc-key": keyCanary, "its-secret": secretCanary} {
		write(t, value+"\n", f.data, "secrets", name)
	}
	for _, worker := range []string{"one", "two"} {
		f.addAsker("at-"+worker, "needs: ["+worker+"]\n")
	}
	f.addAsker("secretive", "secrets: {API_KEY: its-secret}\n")
	f.start()
	seen := map[string]func() string{}
	for _, name := range []string{"one", "two"} {
		seen[name] = f.worker(name, 2, "--label", name).road.records()
	}
	for _, unit := range []string{"at-one", "at-two", "secretive"} {
		doc := filepath.Join(t.TempDir(), "doc")
		write(t, "the file of "+unit, doc)
		record, err := f.submit(t.Context(), client.Submission{
			Unit: unit, Input: fmt.Appendf(nil, `{"mark": "the mark of %s"}`, unit), Files: []client.InputFile{{Field: "doc", Path: doc}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := f.await(record.ID); r.Outcome != api.Success || string(r.Output) != `{"mark":"yes, well done"}` {
			t.Fatalf("%s: %s %s %+v", unit, r.Outcome, r.Output, r.Error)
		}
	}
	one, two := seen["one"](), seen["two"]()
	for worker, text := range map[string]string{"one": one, "two": two} {
		for _, key := range []string{thinkerKey, keyCanary, f.token} {
			if strings.Contains(text, key) {
				t.Errorf("%s has a key", worker)
			}
		}
	}
	if !strings.Contains(one, secretCanary) || strings.Contains(two, secretCanary) {
		t.Error("the secret goes to the worker that may have it, and to no other one")
	}
	for _, what := range []string{"the mark of ", "the file of "} {
		if !strings.Contains(one, what+"at-one") || !strings.Contains(two, what+"at-two") ||
			strings.Contains(one, what+"at-two") || strings.Contains(two, what+"at-one") {
			t.Errorf("%s: a worker has the run of the other one", what)
		}
	}
}

// addAsker gives the server a unit that asks a model and an upstream.
func (f *fleet) addAsker(name, agent string) {
	f.addJob(name, "model: small\nupstreams: [svc]\n"+agent)
	f.runs(name, func(ctx context.Context, box servicetest.Sandbox) int {
		b := boxed{box, ctx}
		_, thought := b.asks("POST", "/v1/chat/completions", "think", `{"model":"small","messages":[{"role":"user","content":"well"}]}`)
		_, answer := b.asks("GET", "/upstream/svc/it", "", "")
		if !strings.Contains(thought, `"yes"`) {
			return 3
		}
		box.Output(map[string]string{"mark": "yes, " + answer})
		return 0
	})
}
