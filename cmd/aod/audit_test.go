package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/audit"
)

// inTeam makes a token of a team.
func (w *walled) inTeam(name, team string, scopes ...access.Scope) {
	w.Helper()
	key, err := w.tokens.Add(access.Grant{Name: name, Scopes: scopes, Teams: []string{team}})
	w.must(err)
	w.keys[name] = key
}

// audited returns the audit as the token of a name sees it, the oldest first, without what depends on the day.
func (w *walled) audited(name, query string) (rows []string) {
	w.Helper()
	status, answer := w.asks(name, http.MethodGet, "/v1/audit?limit=1000"+query, "")
	if status != http.StatusOK {
		w.Fatalf("%d %s", status, answer)
	}
	if strings.Contains(answer, "canary") {
		w.Errorf("the audit has what was given: %s", answer)
	}
	var page api.AuditPage
	w.must(json.Unmarshal([]byte(answer), &page))
	for _, e := range page.Entries {
		row := fmt.Sprintf("%s %s %s %s %s %d", e.Identity, e.Verb, e.Noun, e.Object, e.Result, e.Count)
		if e.Address != "127.0.0.1" && !strings.HasPrefix(e.Identity, "local:") {
			w.Errorf("%s comes from %q", row, e.Address)
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows
}

// begun has a run begun by the token of a name, over HTTP.
func (w *walled) begun(name, text string) (id string) {
	w.Helper()
	status, answer := w.asks(name, http.MethodPost, "/v1/runs", `{"unit": "writer", "input": {"text": "`+text+`"}}`)
	var record api.Record
	if err := json.Unmarshal([]byte(answer), &record); err != nil || status != http.StatusAccepted {
		w.Fatalf("%d %s", status, answer)
	}
	return record.ID
}

func TestTheAuditHasWhoDidWhat(t *testing.T) {
	w := newWalled(t, nil)
	w.add("ops", access.Admin)
	w.inTeam("ada", "a", access.Admin)
	w.inTeam("bob", "b", access.Read)
	run, last, going := w.begun("ops", "canary"), w.begun("ops", "canary"), w.begun("ops", "wait")
	testkit.Eventually(w, "two runs are over, and one goes on", func() bool {
		over, err := w.service.Runs.Get(trusted.Context(w), run)
		w.must(err)
		if other, err := w.service.Runs.Get(trusted.Context(w), last); err != nil || other.Outcome == "" {
			return false
		}
		on, err := w.service.Runs.Get(trusted.Context(w), going)
		return err == nil && over.Outcome != "" && on.State == api.Running
	})
	schedule := `{"unit": "writer", "input": {"text": "canary"}, "every": "1h"}`
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     string // what the audit has of it; "": nothing
	}{
		{"ops", "POST", "/v1/runs/" + going + "/cancel", `{"reason": "enough"}`, 202, "token:ops cancel run " + going},
		{"ops", "POST", "/v1/runs/" + run + "/cancel", `{}`, 409, ""},
		{"ada", "PUT", "/v1/units/mine", w.archive("mine"), 201, "token:ada upload unit a.mine"},
		{"ada", "PUT", "/v1/units/a.mine", w.archive("mine"), 200, "token:ada upload unit a.mine"},
		{"ada", "POST", "/v1/units/mine/disable", "", 200, "token:ada disable unit a.mine"},
		{"ada", "POST", "/v1/units/mine/enable", "", 200, "token:ada enable unit a.mine"},
		{"ada", "DELETE", "/v1/units/mine", "", 204, "token:ada remove unit a.mine"},
		{"ops", "POST", "/v1/units/writer/disable", "", 200, "token:ops disable unit writer"},
		{"ops", "POST", "/v1/units/writer/enable", "", 200, "token:ops enable unit writer"},
		{"ada", "PUT", "/v1/schedules/nightly", schedule, 201, "token:ada put schedule a.nightly"},
		{"ada", "PUT", "/v1/schedules/nightly", schedule, 200, ""},
		{"ada", "POST", "/v1/schedules/nightly/pause", "", 200, "token:ada pause schedule a.nightly"},
		{"ada", "POST", "/v1/schedules/nightly/resume", "", 200, "token:ada resume schedule a.nightly"},
		{"ada", "POST", "/v1/schedules/nightly/run", "", 202, "token:ada start schedule a.nightly"},
		{"ada", "DELETE", "/v1/schedules/a.nightly", "", 204, "token:ada remove schedule a.nightly"},
		{"ops", "POST", "/v1/prune", `{"older_than": "0s", "dry_run": true}`, 200, ""},
		{"ops", "POST", "/v1/prune", `{"older_than": "24h"}`, 200, "token:ops prune runs "},
		{"ops", "POST", "/v1/tokens", `{"name": "new", "scopes": ["read"]}`, 201, "token:ops add token new"},
		{"ops", "POST", "/v1/tokens/new/rotate", `{}`, 200, "token:ops rotate token new"},
		{"ops", "DELETE", "/v1/tokens/new", "", 200, "token:ops remove token new"},
		{"ops", "DELETE", "/v1/tokens/new", "", 404, ""},
		{"ops", "POST", "/v1/runs/" + run + "/rerun", `{}`, 202, "token:ops start run "},
		{"ops", "POST", "/v1/config/reload", "", 200, "token:ops reload config "},
		{"ada", "POST", "/v1/config/reload", "", 403, "token:ada post route /v1/config/reload 403 1"},
		{"ops", "DELETE", "/v1/runs/" + last, "", 200, "token:ops remove run " + last},
		{"ops", "DELETE", "/v1/runs/" + last, "", 404, ""},
		{"bob", "POST", "/v1/prune", `{"older_than": "0s"}`, 403, "token:bob post route /v1/prune 403 1"},
		{"bob", "GET", "/v1/runs/" + run, "", 404, "token:bob get route /v1/runs/:id 404 1"},
		{"bob", "GET", "/v1/runs/01a1feba-b3df-731f-9394-1f77680bf6ce", "", 404, ""},
		{"bob", "GET", "/v1/units/a.mine", "", 404, ""},
		{"bob", "DELETE", "/v1/audit", "", 405, ""},
		{"", "GET", "/v1/runs", "", 401, "anonymous get route /v1/runs 401 1"},
		{"bob", "POST", "/v1/runs", `{"unit": "writer", "input": {}}`, 403, "token:bob post route /v1/runs 403 1"},
		{"bob", "POST", "/v1/runs/" + run + "/cancel", `{}`, 403, "token:bob post route /v1/runs/:id/cancel 403 1"},
		{"bob", "POST", "/v1/runs/" + run + "/rerun", `{}`, 403, "token:bob post route /v1/runs/:id/rerun 403 1"},
		{"bob", "DELETE", "/v1/runs/" + run, "", 403, "token:bob delete route /v1/runs/:id 403 1"},
		{"bob", "PUT", "/v1/units/other", w.archive("other"), 403, "token:bob put route /v1/units/:name 403 1"},
		{"bob", "DELETE", "/v1/units/writer", "", 403, "token:bob delete route /v1/units/:name 403 1"},
		{"bob", "POST", "/v1/units/writer/disable", "", 403, "token:bob post route /v1/units/:name/disable 403 1"},
		{"bob", "POST", "/v1/units/writer/rollback", "", 403, "token:bob post route /v1/units/:name/rollback 403 1"},
		{"bob", "PUT", "/v1/schedules/mine", schedule, 403, "token:bob put route /v1/schedules/:name 403 1"},
		{"bob", "DELETE", "/v1/schedules/mine", "", 403, "token:bob delete route /v1/schedules/:name 403 1"},
		{"bob", "POST", "/v1/schedules/mine/run", "", 403, "token:bob post route /v1/schedules/:name/run 403 1"},
		{"bob", "POST", "/v1/sessions", `{}`, 403, "token:bob post route /v1/sessions 403 1"},
		{"bob", "GET", "/v1/tokens", "", 403, "token:bob get route /v1/tokens 403 1"},
		{"bob", "POST", "/v1/tokens", `{}`, 403, "token:bob post route /v1/tokens 403 1"},
		{"bob", "DELETE", "/v1/tokens/ops", "", 403, "token:bob delete route /v1/tokens/:name 403 1"},
		{"bob", "POST", "/v1/tokens/ops/rotate", `{}`, 403, "token:bob post route /v1/tokens/:name/rotate 403 1"},
		{"bob", "GET", "/v1/audit", "", 403, "token:bob get route /v1/audit 403 1"},
		{"bob", "GET", "/metrics", "", 403, "token:bob get route /metrics 403 1"},
		{"bob", "POST", "/v1/config/reload", "", 403, "token:bob post route /v1/config/reload 403 1"},
		{"bob", "POST", "/execute", `{}`, 403, "token:bob post route /execute 403 1"},
		{"bob", "POST", "/agents/run/sync", `{}`, 403, "token:bob post route /agents/run/sync 403 1"},
		{"bob", "GET", "/v1/runs/" + run + "/tree", "", 404, "token:bob get route /v1/runs/:id/tree 404 1"},
		{"bob", "GET", "/v1/runs/" + run + "/events", "", 404, "token:bob get route /v1/runs/:id/events 404 1"},
		{"bob", "GET", "/v1/runs/" + run + "/logs", "", 404, "token:bob get route /v1/runs/:id/logs 404 1"},
		{"bob", "GET", "/v1/runs/" + run + "/steps", "", 404, "token:bob get route /v1/runs/:id/steps 404 1"},
		{"", "GET", "/v1/units", "", 401, "anonymous get route /v1/units 401 1"},
		{"", "GET", "/v1/usage", "", 401, "anonymous get route /v1/usage 401 1"},
		{"", "GET", "/v1/events", "", 401, "anonymous get route /v1/events 401 1"},
		{"", "GET", "/v1/questions", "", 401, "anonymous get route /v1/questions 401 1"},
		{"", "GET", "/v1/stats", "", 401, "anonymous get route /v1/stats 401 1"},
	} {
		before := w.audited("ops", "")
		headers := []string{}
		if strings.HasPrefix(c.path, "/v1/units/") && c.method == http.MethodPut {
			headers = append(headers, "Content-Type: application/x-tar")
		}
		if status, answer := w.asks(c.name, c.method, c.path, c.body, headers...); status != c.status {
			t.Errorf("%s %s by %q: %d %s", c.method, c.path, c.name, status, answer)
		}
		after := w.audited("ops", "")
		fresh := after[len(before):]
		if c.want == "" && len(fresh) > 0 || c.want != "" && (len(fresh) != 1 || !strings.HasPrefix(fresh[0], c.want)) {
			t.Errorf("%s %s by %q is %q, want %q", c.method, c.path, c.name, fresh, c.want)
		}
	}
	sends := "/" + pbv1.A2AService_ServiceDesc.ServiceName + "/GetTask"
	for name, want := range map[string]string{"bob": "token:bob call route grpc 403 1", "": "anonymous call route grpc 401 1"} {
		w.byGRPC(name, sends, methodsOf(pbv1.File_a2av1_proto)[sends], `{"id":"x"}`)
		if all := w.audited("ops", ""); !slices.Contains(all, want) {
			t.Errorf("a call of %q is %q", name, all[max(0, len(all)-3):])
		}
	}
	who, err := user.Current()
	w.must(err)
	w.must(audit.Leave(filepath.Join(w.data, "server"), "set", "secret", "KEY", ""))
	if all := w.audited("ops", "&by=local:"+who.Username); !slices.Contains(all, "local:"+who.Username+" set secret KEY done 1") {
		t.Errorf("what a command noted is %q", all)
	}
	for _, row := range w.audited("ada", "") {
		if !strings.HasPrefix(row, "token:ada ") {
			t.Errorf("the administrator of a team is told that %s", row)
		}
	}
	if all := w.audited("ops", "&object=a.nightly&by=token:ada"); len(all) != 5 {
		t.Errorf("of one thing the audit has %q", all)
	}
}
