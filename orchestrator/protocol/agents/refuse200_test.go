package agents

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestARefusalOfInputsMayBeAnsweredWith200(t *testing.T) {
	input, busy := fault.New(fault.Input, "the input breaks the contract"), fault.New(fault.Busy, "too many")
	ended := newFake(api.InvalidInput)
	ended.record.Error = &api.RunError{Kind: fault.Input.String()}
	refuses := func(err error) *fakeService { svc := newFake(""); svc.refuses = err; return svc }
	strict := Policy{Rules: Rules{Require: []string{"stage_id"}}, Refuse200: map[string]bool{"worker": true}}
	cases := []struct {
		name   string
		svc    *fakeService
		policy Policy
		body   string
		status int
	}{
		{"by its contract", refuses(input), Policy{Refuse200: map[string]bool{"worker": true}}, asked, 200},
		{"by the unit itself", ended, Policy{Refuse200: map[string]bool{"worker": true}}, asked, 200},
		{"of another unit", refuses(input), Policy{Refuse200: map[string]bool{"other": true}}, asked, 422},
		{"where nothing is set", refuses(input), Policy{}, asked, 422},
		{"that isn't one of inputs", refuses(busy), Policy{Refuse200: map[string]bool{"worker": true}}, asked, 429},
		{"by the server's policy", refuses(nil), strict, asked, 422},
		{"of a request that is none", refuses(nil), Policy{Refuse200: map[string]bool{"worker": true}}, `{"task_type":"WORKER"}`, 422},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := Handler(c.svc, Options{Policy: c.policy})
			notes := newNotes()
			w := ask(trusted.Context(t), h, notes, "POST", "/agents/run/sync", c.body)
			var got Failed
			must(t, json.Unmarshal(w.Body.Bytes(), &got))
			if w.Code != c.status || got.OK || got.Status != StatusFailed || got.Error.Code == "" || len(notes.reports) != 1 {
				t.Errorf("%d %s, reported %v", w.Code, w.Body, notes.reports)
			}
			w = ask(trusted.Context(t), h, newNotes(), "POST", "/agents/run/stream", c.body)
			if streams := w.Header().Get("Content-Type") == httpwire.TypeEvents; streams != (w.Code == 200) {
				t.Errorf("%d %v", w.Code, w.Header())
			}
			if c.status == 200 {
				refusedInStream(t, w.Body.String())
			}
		})
	}
}

// refusedInStream wants a stream whose last event, the only terminal one, is a refusal.
func refusedInStream(t *testing.T, body string) {
	t.Helper()
	_, last, found := strings.Cut(body, "event: final\ndata: ")
	var got Failed
	must(t, json.Unmarshal([]byte(strings.TrimSpace(last)), &got))
	if !found || got.Type != agenthttp.Final || got.RequestID != "r-1" || got.TaskType != "WORKER" || got.OK || got.Error.Code != "VALIDATION_ERROR" {
		t.Errorf("%s", body)
	}
}

func TestAUnitThatFailsSaysSoInTheContractsWords(t *testing.T) {
	for name, refuses := range map[string]map[string]bool{"TASK_FAILED": {"worker": true}, "unit_failed": nil} {
		svc := newFake(api.CapsuleError)
		svc.record.Error = &api.RunError{Kind: string(api.CapsuleError)}
		h := Handler(svc, Options{Policy: Policy{Refuse200: refuses}})
		for path, status := range map[string]int{"sync": map[bool]int{true: 200, false: 502}[refuses != nil], "stream": 200} {
			w := ask(trusted.Context(t), h, newNotes(), "POST", "/agents/run/"+path, asked)
			if w.Code != status || !strings.Contains(w.Body.String(), `"code":"`+name+`"`) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}
}

func TestANameOfAFileIsARefusalOfInputs(t *testing.T) {
	svc := &filing{newFake("")}
	h := Handler(svc, Options{Policy: Policy{Refuse200: map[string]bool{"worker": true}}})
	w := ask(trusted.Context(t), h, newNotes(), "POST", "/agents/run/sync", `{"request_id":"r-1","task_type":"WORKER","inputs":{"doc":"x.txt"}}`)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"pointer":"/doc"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// filing is a service whose unit takes a file.
type filing struct{ *fakeService }

func (*filing) Schema(context.Context, string) ([]byte, error) {
	return []byte(`{"input":{"type":"object","properties":{"doc":{"type":"string","format":"file_path"}}},"output":{"type":"object"}}`), nil
}
