package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

// jsonOf is a value as it is sent.
func jsonOf(v any) agenthttp.Object {
	raw, _ := json.Marshal(v)
	return raw
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// contractOf is the digest of what the unit's address gives.
func contractOf(s *server, unit string) string {
	s.t.Helper()
	return digestOf(s.do("GET", "/v1/units/"+unit+"/schema", "").wants(s.t, 200).body)
}

// listed returns the ids of the runs that a query finds.
func (s *server) listed(query string) (ids []string) {
	s.t.Helper()
	for _, r := range decode[api.Page](s.t, s.do("GET", "/v1/runs?"+query, "").wants(s.t, 200)).Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestWhatATaskIsAboutIsKeptAndFound(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	about := `,"user_id":"ada","mode":"LIVE","risk_tier":"NON_SENSITIVE","domain_id":"clinical","workflow_id":"w 1","stage_id":"s:1"`
	first := s.do("POST", "/agents/run/sync", asks("ACTOR", `{}`, about)).wants(t, 200).Header.Get(auHeader)
	second := s.do("POST", "/agents/run/stream", asks("actor", `{}`, `,"user_id":"","stage_id":null`)).wants(t, 200).Header.Get(auHeader)
	want := map[string]string{
		"request_id": "r-1", "task_type": "ACTOR", "user_id": "ada", "mode": "LIVE", "risk_tier": "NON_SENSITIVE",
		"domain_id": "clinical", "workflow_id": "w 1", "stage_id": "s:1",
	}
	for id, want := range map[string]map[string]string{first: want, second: {"request_id": "r-1", "task_type": "actor", "mode": "DEMO"}} {
		got := decode[api.Record](t, s.do("GET", "/v1/runs/"+id, "").wants(t, 200)).Metadata
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for query, want := range map[string][]string{
		"metadata=user_id:ada&metadata=mode:LIVE":           {first},
		"metadata=mode:DEMO":                                {second},
		"metadata=stage_id:s:1":                             {first},
		"metadata=workflow_id:" + url.QueryEscape("w 1"):    {first},
		"metadata=request_id:r-1&unit=actor":                {second, first},
		"metadata=user_id:ada&metadata=mode:DEMO":           nil,
		"metadata=user_id:ada&metadata=user_id:ada&limit=1": {first},
		"metadata=user_id:ad":                               nil,
	} {
		if diff := gocmp.Diff(want, s.listed(query)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for _, bad := range []string{"metadata=user_id", "metadata=User:x", "metadata=a:", "metadata=", "metadata=a:b&metadata=a:c", "metadata=a:%00", "metadata=" + strings.Repeat("a", 41) + ":x"} {
		s.do("GET", "/v1/runs?"+bad, "").wants(t, 400)
	}
}

func TestASubmissionMayHaveMetadata(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	parts := []part{{name: "unit", content: "actor"}, {name: "metadata", content: `{"user_id":"ada"}`}, {name: "doc", filename: "a.txt", content: "x"}}
	body, contentType := formOf(t, parts...)
	for _, a := range []answer{
		s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","metadata":{"user_id":"ada"}}`),
		s.do("POST", "/v1/runs?wait=3m", body, contentType),
	} {
		record := decode[api.Record](t, a.wants(t, 200))
		if record.Metadata["user_id"] != "ada" {
			t.Errorf("%v", record.Metadata)
		}
		again := decode[api.Record](t, s.do("POST", "/v1/runs/"+record.ID+"/rerun?wait=3m", "").wants(t, 200))
		if diff := gocmp.Diff(record.Metadata, again.Metadata); diff != "" {
			t.Error(diff)
		}
	}
	if found := s.listed("metadata=user_id:ada"); len(found) != 4 {
		t.Errorf("found %v", found)
	}
	for body, status := range map[string]int{
		`{"unit":"actor","metadata":{"canary!":"x"}}`:                                422,
		`{"unit":"actor","metadata":{"a":"canary\n"}}`:                               422,
		`{"unit":"actor","metadata":{"a":"canary` + strings.Repeat("x", 200) + `"}}`: 422,
		`{"unit":"actor","metadata":{"a":7}}`:                                        400,
		`{"unit":"actor","metadata":{"a":null}}`:                                     422,
		`{"unit":"actor","metadata":["canary"]}`:                                     400,
		`{"unit":"actor","metadata":{"a":"canary","a":"canary"}}`:                    400,
		`{"unit":"actor","metadata":` + string(jsonOf(many(17))) + `}`:               422,
	} {
		if a := s.do("POST", "/v1/runs", body).wants(t, status); strings.Contains(a.body, "canary") {
			t.Errorf("%s is answered with %s", body, a.body)
		}
	}
	for _, bad := range []string{"[]", `{"a":7}`, `{"a":"x"`, `{"a":"x","a":"x"}`, strings.Repeat(" ", 40<<10)} {
		body, contentType := formOf(t, parts[0], part{name: "metadata", content: bad})
		if a := s.do("POST", "/v1/runs", body, contentType); a.StatusCode != 400 && a.StatusCode != 413 {
			t.Errorf("%.20s: %d %s", bad, a.StatusCode, a.body)
		}
	}
}

func many(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all["k"+strings.Repeat("x", i)] = "canary"
	}
	return all
}

func TestAPolicyForTasks(t *testing.T) {
	t.Parallel()
	s := newServerWith(t, agents.Policy{
		Rules: agents.Rules{Require: []string{"user_id"}, Modes: []string{"DEMO", "LIVE"}},
		Units: map[string]agents.Rules{"careful": {Require: []string{"stage_id"}, Modes: []string{"DEMO"}, RiskTiers: []string{"LOW", "NONE"}}},
	}, nil)
	s.addUnit("careful")
	const ada, low = `,"user_id":"ada"`, `,"user_id":"ada","stage_id":"s","risk_tier":"LOW"`
	for _, c := range []struct {
		unit, more string
		status     int
		fields     string
	}{
		{"actor", ada, 200, ""},
		{"actor", ada + `,"mode":"LIVE","risk_tier":"anything"`, 200, ""},
		{"actor", "", 422, "/user_id"},
		{"actor", `,"user_id":null`, 422, "/user_id"},
		{"actor", `,"user_id":""`, 422, "/user_id"},
		{"actor", `,"mode":"canary"`, 422, "/user_id"},
		{"actor", ada + `,"mode":"canary"`, 403, "/mode"},
		{"actor", ada + `,"mode":"live"`, 403, "/mode"},
		{"careful", low, 200, ""},
		{"careful", low + `,"mode":"DEMO"`, 200, ""},
		{"careful", low + `,"mode":"LIVE"`, 403, "/mode"},
		{"careful", ada, 422, "/risk_tier /stage_id"},
		{"careful", ada + `,"stage_id":"s"`, 422, "/risk_tier"},
		{"careful", ada + `,"stage_id":"s","risk_tier":""`, 422, "/risk_tier"},
		{"careful", ada + `,"stage_id":"s","risk_tier":"canary","mode":"canary"`, 403, "/mode /mode /risk_tier"},
	} {
		for _, base := range []string{"/agents", "/agents/" + c.unit} {
			for _, way := range []string{"/run/sync", "/run/stream"} {
				a := s.do("POST", base+way, asks(c.unit, `{}`, c.more))
				if a.StatusCode != c.status || strings.Contains(a.body, "canary") {
					t.Fatalf("%s %s: %d %s", c.unit, c.more, a.StatusCode, a.body)
				}
				if c.status == 200 {
					continue
				}
				r := a.refusedWith(t, c.status, map[int]string{403: "forbidden", 422: "invalid_input"}[c.status])
				if got := pointers(r); got != c.fields || r.RequestID != "r-1" {
					t.Errorf("%s %s is refused for %s: %s", c.unit, c.more, got, a.body)
				}
			}
		}
	}
}

func pointers(r agents.Failed) string {
	var all []string
	for _, f := range r.Error.Findings {
		all = append(all, f.Pointer)
	}
	return strings.Join(all, " ")
}

func TestTaskTypesThatTheOperatorGives(t *testing.T) {
	t.Parallel()
	s := newServerWith(t, agents.Policy{TaskTypes: map[string]string{"LIT_RETRIEVAL": "actor", "OTHER": "actor", "GONE": "nobody", "Ä type": "other"}}, nil)
	s.addUnit("other")
	for _, c := range []struct{ base, taskType, unit string }{
		{"/agents", "LIT_RETRIEVAL", "actor"},
		{"/agents", "OTHER", "actor"}, // and not the unit of that name
		{"/agents", "other", "other"},
		{"/agents", "Ä type", "other"},
		{"/agents/actor", "OTHER", "actor"},
		{"/agents/other", "OTHER", ""},
		{"/agents", "GONE", ""},
		{"/agents", "lit_retrieval", ""},
	} {
		a := s.do("POST", c.base+"/run/sync", asks(c.taskType, `{}`))
		if c.unit == "" {
			a.refusedWith(t, 404, "not_found")
			continue
		}
		var from agents.Provenance
		must(t, json.Unmarshal(jsonOf(decode[map[string]json.RawMessage](t, a.wants(t, 200))["provenance"]), &from))
		if from.Unit != c.unit || from.Contract != contractOf(s, c.unit) {
			t.Errorf("%s at %s was done by %+v", c.taskType, c.base, from)
		}
	}
}

func TestATaskThatSaysTooMuchOfItselfIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	long := "canary" + strings.Repeat("x", 200)
	for field, text := range map[string]string{
		"user_id": long, "mode": `canary\u0007`, "risk_tier": long, "domain_id": `canary\n`, "workflow_id": long, "stage_id": long,
	} {
		a := s.do("POST", "/agents/run/sync", asks("actor", `{}`, `,"`+field+`":"`+text+`"`))
		if r := a.refusedWith(t, 422, "invalid_input"); pointers(r) != "/"+field || strings.Contains(a.body, "canary") {
			t.Errorf("%s: %s", field, a.body)
		}
	}
	s.do("POST", "/agents/run/sync", `{"request_id":"`+long+`","task_type":"actor"}`).refusedWith(t, 422, "invalid_input")
}

func TestHealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for path, want := range map[string]string{
		"/health":       `{"service":"aod","status":"healthy"}`,
		"/health/ready": `{"service":"aod","status":"ready"}`,
	} {
		if a := s.do("GET", path, "", "Authorization: -").wants(t, 200); a.body != want+"\n" {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}
