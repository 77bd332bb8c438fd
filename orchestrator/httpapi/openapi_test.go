package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
	"github.com/agent-on-demand/aod/schemas"
)

// document is the OpenAPI document, as far as the tests read it.
type document struct {
	Paths      map[string]map[string]operation
	Components struct {
		Responses map[string]response
		Schemas   map[string]any
	}
	inDraft07 any // the components, as a validator reads them
}

type operation struct {
	OperationID string
	Security    []any
	Parameters  []struct {
		Name, In string
		Ref      string `json:"$ref"`
	}
	Responses map[string]response
}

type response struct {
	Ref     string `json:"$ref"`
	Headers map[string]any
	Content map[string]struct {
		Schema any
		Item   any `json:"x-itemSchema"` // of each event or line of a stream
	}
}

var theDocument = sync.OnceValue(func() document {
	raw := schemas.OpenAPI("")
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		panic(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(raw, &whole); err != nil {
		panic(err)
	}
	d.inDraft07 = inDraft07(whole["components"])
	return d
})

// template turns a pattern of Echo's into a path of the document.
func template(pattern string) string {
	path := regexp.MustCompile(`:(\w+)`).ReplaceAllString(pattern, "{$1}")
	return strings.Replace(path, "/*", "/{name}", 1)
}

func TestTheDocumentHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	api, err := New(&orchestrator.Service{}, Options{NoAuth: true, Mounts: mountsOf(&orchestrator.Service{}, agents.Options{})})
	must(t, err)
	var served, written []string
	for _, r := range api.routes.router.Routes() {
		if r.Method != http.MethodHead {
			served = append(served, strings.ToLower(r.Method)+" "+template(r.Path))
		}
	}
	for path, operations := range theDocument().Paths {
		for method := range operations {
			written = append(written, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(written)
	if !slices.Equal(served, written) {
		t.Errorf("served %q\nwritten %q", served, written)
	}
}

func TestTheDocumentSaysWhichRoutesNeedNoToken(t *testing.T) {
	t.Parallel()
	api, err := New(&orchestrator.Service{}, Options{NoAuth: true, Mounts: mountsOf(&orchestrator.Service{}, agents.Options{})})
	must(t, err)
	for pattern, r := range api.routes.known {
		method, path, _ := strings.Cut(pattern, " ")
		if method == http.MethodHead {
			continue
		}
		op := theDocument().Paths[template(path)][strings.ToLower(method)]
		if documented := op.Security != nil; documented != (r.traits&open != 0) {
			t.Errorf("%s %s: open is %v in the document", method, path, documented)
		}
	}
}

func TestTheDocumentIsWhole(t *testing.T) {
	t.Parallel()
	api, err := New(&orchestrator.Service{}, Options{NoAuth: true, Version: `1.2.3 "x"`})
	must(t, err)
	var whole map[string]any
	r := request("GET", "/openapi.json", "")
	r.Host = "localhost"
	must(t, json.Unmarshal(record(api.Handler(), r).Body.Bytes(), &whole))
	if version := whole["info"].(map[string]any)["version"]; version != `1.2.3 "x"` {
		t.Errorf("version %q", version)
	}
	ids := map[string]bool{}
	for path, operations := range theDocument().Paths {
		for method, op := range operations {
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s %s has no operationId of its own", method, path)
			}
			ids[op.OperationID] = true
		}
	}
	eachRef(whole, func(ref string) {
		if !resolves(whole, ref) {
			t.Errorf("%s leads nowhere", ref)
		}
	})
}

func eachRef(v any, do func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			do(ref)
		}
		for _, e := range v {
			eachRef(e, do)
		}
	case []any:
		for _, e := range v {
			eachRef(e, do)
		}
	}
}

func resolves(whole any, ref string) bool {
	path, ok := strings.CutPrefix(ref, "#/")
	for key := range strings.SplitSeq(path, "/") {
		object, isObject := whole.(map[string]any)
		if whole = object[key]; !isObject || whole == nil {
			return false
		}
	}
	return ok
}

// TestEveryRouteAnswersAsDocumented asks every operation for its good answers; the
// comparison is in server.do, for this test and all others.
func TestEveryRouteAnswersAsDocumented(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) {
		o.A2A = func(context.Context) (api.A2AStatus, error) {
			tasks := map[string]int{"submitted": 0, "working": 0, "completed": 1, "failed": 0, "canceled": 0}
			return api.A2AStatus{Units: []string{}, Bindings: []string{"JSONRPC"}, Versions: []string{"1.0"}, Tasks: tasks}, nil
		}
		o.Tokens = access.NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
		o.People = issuer.New(issuer.Options{URL: "https://issuer.example", Scopes: []string{"openid"}})
	})
	s.addSizer()
	record := s.run(`{"do":"files","say":"x"}`)
	run := "/v1/runs/" + record.ID
	seen := map[string]bool{"submitRun": true}
	for _, c := range []struct {
		method, path, body string
		headers            []string
	}{
		{"GET", "/v1/runs?limit=5", "", nil},
		{"GET", "/v1/runs/counts?by=outcome&roots=true", "", nil},
		{"GET", run, "", nil},
		{"GET", run + "/output", "", nil},
		{"GET", run + "/tree", "", nil},
		{"GET", run + "/files", "", nil},
		{"GET", run + "/files/sub/page.html", "", nil},
		{"GET", run + "/logs", "", []string{"Accept: " + ndjson}},
		{"GET", run + "/logs", "", nil},
		{"GET", run + "/events", "", nil},
		{"GET", run + "/models", "", nil},
		{"GET", run + "/pushes", "", nil},
		{"POST", run + "/rerun", "", nil},
		{"GET", "/v1/units", "", nil},
		{"GET", "/v1/units/actor", "", nil},
		{"GET", "/v1/units/actor?wait=idle", "", nil},
		{"POST", "/v1/units/actor/disable", "", nil},
		{"POST", "/v1/units/actor/enable", "", nil},
		{"GET", "/v1/units/actor/schema", "", nil},
		{"GET", "/v1/units/sizer/card", "", nil},
		{"POST", "/v1/au/sizer", "some text", nil},
		{"PUT", "/v1/units/uploaded", archive(t, "uploaded"), []string{"Content-Type: application/x-tar"}},
		{"GET", "/v1/units/uploaded/versions", "", nil},
		{"DELETE", "/v1/units/uploaded", "", nil},
		{"POST", "/execute", `{"capsule":"actor","input":{"do":"files"},"stray":1}`, nil},
		{"POST", "/execute", `{"capsule":"actor","input":{"do":"fail"}}`, nil},
		{"GET", "/capsules", "", nil},
		{"GET", "/capsules/actor/schema", "", nil},
		{"GET", "/health", "", []string{"Authorization: -"}},
		{"GET", "/health/ready", "", []string{"Authorization: -"}},
		{"POST", "/agents/run/sync", asks("ACTOR", `{"do":"files"}`), nil},
		{"POST", "/agents/run/stream", asks("actor", `{}`), nil},
		{"POST", "/agents/actor/run/sync", asks("actor", `{}`), nil},
		{"POST", "/agents/actor/run/stream", asks("ACTOR", `{}`), nil},
		{"GET", "/healthz", "", []string{"Authorization: -"}},
		{"GET", "/readyz", "", []string{"Authorization: -"}},
		{"GET", "/metrics", "", nil},
		{"GET", "/openapi.json", "", []string{"Authorization: -"}},
		{"GET", "/v1/pool", "", nil},
		{"GET", "/v1/a2a", "", nil},
		{"GET", "/v1/models", "", nil},
		{"GET", "/v1/stats", "", nil},
		{"GET", "/v1/usage?by=team,unit,day", "", nil},
		{"GET", "/v1/quotas", "", nil},
		{"GET", "/v1/demand", "", nil},
		{"GET", "/v1/audit?limit=1000", "", nil},
		{"POST", "/v1/signin", "", nil},
		{"GET", "/v1/login", "", nil},
		{"GET", "/v1/whoami", "", nil},
		{"POST", "/v1/tokens", `{"name":"ci","scopes":["run"],"units":["actor"],"rate":6,"runs":1,"expires":"90d"}`, nil},
		{"POST", "/v1/tokens/ci/rotate", `{"grace":"1m"}`, nil},
		{"GET", "/v1/tokens", "", nil},
		{"DELETE", "/v1/tokens/ci", "", nil},
		{"POST", "/v1/config/reload", "", nil},
		{"DELETE", run, "", nil},
		{"POST", "/v1/prune", `{"dry_run":true,"older_than":"1h","max_bytes":5}`, nil},
	} {
		a := s.do(c.method, c.path, c.body, c.headers...)
		if a.StatusCode > 299 {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
		}
		op, _ := operationOf(&http.Request{Method: c.method, URL: mustURL(t, c.path)})
		seen[op.OperationID] = true
	}
	s.do("GET", run+"/models/1", "").wants(t, 404)
	seen["getModelCall"] = true
	for op, path := range map[string]string{"getChanges": "/changes", "getPatch": "/changes.patch", "getChangedFile": "/changes/files/a"} {
		s.do("GET", run+path, "").wants(t, 404) // it had no workspace
		seen[op] = true
	}
	s.do("POST", "/mcp/actor", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`).wants(t, 404)
	s.do("GET", "/mcp/actor", "").wants(t, 400)
	s.do("DELETE", "/mcp/actor", "").wants(t, 400)
	seen["postMCPUnit"], seen["streamMCPUnit"], seen["endMCPUnitSession"] = true, true, true
	id := s.begin()
	s.do("POST", "/v1/runs/"+id+"/cancel", "").wants(t, 202)
	seen["cancelRun"] = true
	for _, op := range []string{"getFlow", "getUnitFlow", "listSteps", "getState", "getStateFile", "listQuestions", "answerQuestion", "getQuestion", "getQuestionFile"} {
		seen[op] = true // see TestAFlowOverHTTP
	}
	for _, op := range []string{"sayToRun", "listMessages", "listArtifacts", "getArtifact"} {
		seen[op] = true // see TestMessagesOverHTTP
	}
	for _, op := range []string{"createSession", "listSessions", "getSession", "closeSession", "sendMessage"} {
		seen[op] = true // see TestASessionOverHTTP
	}
	for _, op := range []string{"getSessionChanges", "getSessionPatch", "getSessionChangedFile"} {
		seen[op] = true // see TestASessionWorksOnAProject of cmd/aod
	}
	seen["followNews"] = true   // see TestNewsAreStreamedAndGoOnAfterALostConnection
	seen["rollbackUnit"] = true // see TestAnUploadedUnitIsSetBackAndRemoved
	for _, op := range []string{"listSchedules", "previewTimes", "putSchedule", "getSchedule", "deleteSchedule", "pauseSchedule", "resumeSchedule", "runSchedule", "nextTimes", "listOccurrences"} {
		seen[op] = true // see TestAScheduleOverHTTP
	}
	for _, op := range []string{"listWebhooks", "addWebhook", "getWebhook", "deleteWebhook", "testWebhook", "rotateWebhook", "startByHook"} {
		seen[op] = true // see TestAWebhookOverHTTP, TestAHookStartsARun
	}
	for _, op := range []string{"listWorkers", "addWorker", "drainWorker", "undrainWorker", "removeWorker"} {
		seen[op] = true // see TestWorkersAreManagedByAPI
	}
	for _, op := range []string{"postMCP", "streamMCP", "endMCPSession"} {
		seen[op] = true // see TestASessionOfMCP
	}
	for _, operations := range theDocument().Paths {
		for op := range maps.Values(operations) {
			if !seen[op.OperationID] {
				t.Errorf("%s was not asked for", op.OperationID)
			}
		}
	}
}

func mustURL(t *testing.T, path string) *url.URL {
	t.Helper()
	u, err := url.Parse(path)
	must(t, err)
	return u
}

func TestWhatAServiceSaysIsInTheSchemas(t *testing.T) {
	t.Parallel()
	someTime := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, v := range map[string]any{
		"Page": api.Page{Runs: []api.Summary{{ID: "01a1feaa-035d-7ae0-9d97-1e84e60a433a", Unit: "u", State: "idle"}}},
		"Unit": api.Unit{Name: "u", Source: "upload", Problem: &api.UnitProblem{Message: "m"}},
		"A2AStatus": api.A2AStatus{
			Units: []string{"u"}, Bindings: []string{"JSONRPC"}, Versions: []string{"1.0"},
			Tasks: map[string]int{"submitted": 0, "working": 1, "completed": 2, "failed": 3, "canceled": 4},
		},
		"Pushes": map[string]any{"next": nil, "pushes": []api.Push{
			{ID: "p", URL: "https://hook.example/", CreatedAt: someTime},
			{ID: "q", URL: "https://hook.example/", Scheme: "Basic", CreatedAt: someTime, TriedAt: &someTime, Status: 500, NextAt: &someTime, GivenUpAt: &someTime, Reason: api.PushRefused},
		}},
		"Pool":  api.PoolStats{Units: []api.PoolUnit{{Unit: "u", Waiting: []api.PoolSandbox{{ID: "01a1feaa-035d-7ae0-9d97-1e84e60a433a", Container: "c"}}}}},
		"Event": map[string]any{"id": 1, "event": "state", "data": map[string]any{"state": "idle", "at": "2026-01-01T00:00:00Z"}},
	} {
		if found := violations(map[string]any{"$ref": "#/components/schemas/" + name}, v); len(found) > 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
	wrong := map[string]any{"id": 1, "event": "end", "data": map[string]any{"state": "idle"}}
	if len(violations(map[string]any{"$ref": "#/components/schemas/Event"}, wrong)) == 0 {
		t.Error("an end without an outcome is taken")
	}
}
