package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// named is a request that names something: its query, its body and its headers, in which {run} stands for the id of a
// run, and so on.
type named struct {
	query, body string
	headers     []string
}

const asTar = "Content-Type: application/x-tar"

// nouns are what the first parameter of a route's path names, by how the path begins.
var nouns = map[string]string{
	"/v1/runs/": "run", "/v1/sessions/": "session", "/v1/questions/": "question", "/v1/schedules/": "schedule",
	"/v1/units/": "unit", "/v1/au/": "unit", "/capsules/": "unit", "/mcp/": "unit", "/agents/": "unit",
	"/v1/tokens/": "token", "/v1/webhooks/": "webhook", "/v1/hooks/": "hook", "/v1/workers/": "worker",
}

// others are what stands for the further parameters of paths.
var others = strings.NewReplacer("{n}", "1", "{artifact}", "art", "{name}", "report.txt")

const toAgents = `{"request_id":"r-1","task_type":"{unit}","inputs":{"text":"x"}}`

// sends are what routes take whose path names something; none: nothing.
var sends = map[string]named{
	"post /v1/runs/{id}/messages":     {body: `{"parts":[{"text":"hi"}]}`},
	"post /v1/sessions/{id}/messages": {body: `{"message":"hi"}`},
	"post /v1/questions/{id}":         {body: `{"action":"approve"}`},
	"put /v1/schedules/{name}":        {body: `{"unit":"writer","every":"2000h"}`},
	"put /v1/units/{name}":            {body: "TAR", headers: []string{asTar}},
	"post /v1/units/{name}/rollback":  {body: `{"version":"sha256:0"}`},
	"post /v1/au/{name}":              {body: `x`, headers: []string{"Content-Type: text/plain"}},
	"post /mcp/{unit}":                {body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers: []string{"Accept: application/json, text/event-stream"}},
	"get /mcp/{unit}":                 {headers: []string{"Accept: text/event-stream"}},
	"post /agents/{unit}/run/sync":    {body: toAgents},
	"post /agents/{unit}/run/stream":  {body: toAgents},
}

// namers are the requests that name something by routes whose path doesn't; none where nothing can be named.
var namers = map[string][]named{
	"post /v1/runs": {
		{body: `{"unit":"{unit}","input":{}}`}, {body: `{"session":"{session}","input":{"message":"x"}}`},
	},
	"get /v1/runs":               {{query: "parent={run}"}, {query: "session={session}"}, {query: "schedule={schedule}"}, {query: "unit={unit}"}},
	"get /v1/runs/counts":        {{query: "by=unit&parent={run}"}, {query: "by=unit&session={session}"}, {query: "by=state&schedule={schedule}"}, {query: "by=state&unit={unit}"}},
	"post /v1/sessions":          {{body: `{"unit":"{unit}"}`}},
	"get /v1/sessions":           {{query: "unit={unit}"}},
	"get /v1/questions":          {{query: "run={run}"}, {query: "run={run}&all=true"}},
	"post /execute":              {{body: `{"capsule":"{unit}","input":{}}`}, {body: `{"capsule":"{unit}","input":{}}`, headers: []string{"Accept: application/problem+json"}}},
	"post /agents/run/sync":      {{body: toAgents}},
	"post /agents/run/stream":    {{body: toAgents}},
	"get /v1/schedules":          nil,
	"get /v1/webhooks":           nil,
	"post /v1/webhooks":          {{body: `{"url":"http://hook.example:9/in","run":"{run}"}`}},
	"post /v1/schedules/preview": nil,
	"get /v1/units":              nil,
	"get /v1/models":             nil,
	"get /v1/pool":               nil,
	"get /v1/events":             nil, // see TestTheNewsOfATeam
	"get /v1/a2a":                nil,
	"get /v1/stats":              nil,
	"get /v1/usage":              nil,
	"get /v1/quotas":             nil,
	"get /v1/audit":              {{query: "object={run}"}, {query: "object={unit}"}, {query: "object={schedule}"}},
	"get /v1/tokens":             nil,
	"post /v1/tokens":            nil, // a name is taken, whoever has it
	"get /v1/demand":             nil,
	"get /v1/workers":            nil,
	"post /v1/workers":           nil, // see TestWorkersAreTheWholeServers of package httpapi
	"get /v1/login":              nil,
	"get /v1/whoami":             nil,
	"post /v1/config/reload":     nil,
	"post /v1/prune":             nil, // see TestATeamPrunesItsOwn
	"post /v1/signin":            nil,
	"get /capsules":              nil,
	"get /health":                nil,
	"post /mcp":                  nil, // see TestMCPTellsATeamNothingOfAnother
	"get /mcp":                   nil,
	"delete /mcp":                nil,
	"get /health/ready":          nil,
	"get /healthz":               nil,
	"get /readyz":                nil,
	"get /metrics":               nil,
	"get /openapi.json":          nil,
}

// naming is a request of the matrix.
type naming struct {
	named
	route, method, path, noun string
}

// matrix are the requests that name something, by all the routes that the server says it has: those that only read
// first, those that make something last.
func (w *teams) matrix() (all []naming) {
	w.Helper()
	_, raw := w.asks("", http.MethodGet, "/openapi.json", "")
	var document struct{ Paths map[string]map[string]any }
	w.must(json.Unmarshal([]byte(raw), &document))
	order := []string{"get", "post", "delete", "put"}
	for _, method := range order {
		for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
			if _, served := document.Paths[path][method]; served {
				all = append(all, w.requestsOf(method, path)...)
			}
		}
	}
	for path, methods := range document.Paths {
		for method := range methods {
			if method != "parameters" && !slices.Contains(order, method) {
				w.Errorf("%s %s isn't naming", method, path)
			}
		}
	}
	return all
}

// requestsOf are the requests that name something by a route.
func (w *teams) requestsOf(method, path string) (all []naming) {
	w.Helper()
	route := method + " " + path
	if !strings.Contains(path, "{") {
		requests, known := namers[route]
		if !known {
			w.Errorf("what can %s name? namers has no row for it", route)
		}
		for _, r := range requests {
			noun, _, _ := strings.Cut(r.query+r.body, "}")
			noun = noun[strings.LastIndex(noun, "{")+1:]
			all = append(all, naming{r, route, method, path, noun})
		}
		return all
	}
	noun := ""
	for prefix, of := range nouns {
		if strings.HasPrefix(path, prefix) {
			noun = of
		}
	}
	if noun == "" {
		w.Errorf("what does %s name? nouns has no row for it", route)
		return nil
	}
	before, rest, _ := strings.Cut(path, "{")
	_, rest, _ = strings.Cut(rest, "}")
	return []naming{{sends[route], route, method, before + "{" + noun + "}" + others.Replace(rest), noun}}
}

// answer is what a token is told where a request names an id, which it says as ID.
func (w *teams) answer(name string, r naming, id string) string {
	w.Helper()
	in := func(text string) string { return strings.ReplaceAll(text, "{"+r.noun+"}", id) }
	path, body := in(r.path), in(r.body)
	if r.query != "" {
		path += "?" + in(r.query)
	}
	if body == "TAR" {
		body = tarOf(w, map[string]string{"Dockerfile": "FROM base:1\n"})
	}
	response := w.begins(name, strings.ToUpper(r.method), path, body, r.headers...)
	return strings.ReplaceAll(said(w, response), id, "ID")
}

// What b asks by any route with the id of what a has is answered as for an id that never was, and changes nothing of a's.
// So that this says something, each route tells a something else of one of them.
func TestNoRouteTellsATeamOfAnother(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	before, requests := w.all("a"), w.matrix()
	told := map[string]string{}
	key := func(r naming, id string) string { return r.route + " " + r.query + r.body + " " + id }
	for _, r := range requests {
		for _, id := range w.has[r.noun] {
			told[key(r, id)] = w.answer("b", r, id)
			if none := w.answer("b", r, never(r.noun, id)); told[key(r, id)] != none {
				t.Errorf("%s:\n%s\nand of none:\n%s", key(r, id), told[key(r, id)], none)
			}
			if r.method != "get" {
				continue
			}
			head := r
			head.method = "head"
			if got, none := w.answer("b", head, id), w.answer("b", head, never(r.noun, id)); got != none {
				t.Errorf("%s as HEAD:\n%s\nand of none:\n%s", key(r, id), got, none)
			}
		}
	}
	for what, after := range w.all("a") {
		if before[what] != after {
			t.Errorf("%s was\n%s\nand is\n%s", what, before[what], after)
		}
	}
	slices.SortStableFunc(requests, func(r, s naming) int { return cmp.Compare(turnOf(r.method), turnOf(s.method)) })
	for _, r := range requests {
		toldA := slices.ContainsFunc(w.has[r.noun], func(id string) bool { return w.answer("a", r, id) != told[key(r, id)] })
		opens := strings.HasPrefix(r.path, "/mcp/") && r.method != "post" // see TestASessionIsOfItsToken of package relay
		if !toldA && !opens && r.noun != "hook" && r.noun != "worker" {   // see TestAHookStartsARun of package httpapi; no team has workers
			t.Errorf("%s with %s tells its own team nothing, either", r.route, r.query+r.body)
		}
	}
}

// turnOf has what is deleted come last.
func turnOf(method string) int {
	return slices.Index([]string{"get", "put", "post", "delete"}, method)
}

// all is what a token is told by every route that reads, of everything that a has, by the requests.
func (w *teams) all(name string) map[string]string {
	w.Helper()
	told := map[string]string{}
	for _, r := range w.matrix() {
		if r.method != "get" || strings.HasPrefix(r.path, "/mcp") || strings.HasSuffix(r.path, "/logs") || strings.HasSuffix(r.path, "/events") {
			continue
		}
		for _, id := range w.has[r.noun] {
			told[r.route+" "+r.query+" "+id] = w.answer(name, r, id)
		}
	}
	return told
}
