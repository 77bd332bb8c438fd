package capsuleapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/handofftest"
)

func TestCapsulesListsWhatIsGrantedAndExists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Add("secret", callee)
	w.caller.Grants = []string{"callee", "missing"}
	w.runs.Add("callee", `{"input":{"type":"object"},"output":{"title":"<o>"}}`)
	w.renew()
	const want = `{"capsules":{"callee":{"description":"The callee.","input":{"type":"object"},"output":{"title":"<o>"}}}}` + "\n"
	if rec := w.do("GET", "/capsules", ""); rec.Code != 200 || rec.Body.String() != want {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.runs.Broken = errors.New("x")
	answered[problem](t, w.do("GET", "/capsules", ""), 500)
}

func TestCapsulesShowsPlainJSONSchemaWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller.Grants = []string{"callee"}
	w.runs.Add("callee", `{"input":{"type":"dict","properties":{"a":{"$ref":"#/definitions/x"}}},"output":{"type":"object"},"definitions":{"x":{"type":"int"}}}`)
	w.renew()
	const want = `{"capsules":{"callee":{"description":"The callee.","input":{"$defs":{"d1":{"type":"integer"}},` +
		`"properties":{"a":{"$ref":"#/$defs/d1"}},"type":"object"},"output":{"type":"object"}}}}` + "\n"
	if rec := w.do("GET", "/capsules?schema=json", ""); rec.Code != 200 || rec.Body.String() != want {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for _, query := range []string{"schema=", "schema=yaml", "schema=json&schema=json", "schema=json&x=1", "x", "%zz"} {
		answered[problem](t, w.do("GET", "/capsules?"+query, ""), 400)
	}
}

func TestASchemaIsShownAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if rec := w.do("GET", "/capsules/callee/schema", ""); rec.Code != 200 || rec.Body.String() != callee {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if p := answered[problem](t, w.do("GET", "/capsules/other/schema", ""), 403); handoff.Rule(p.Rule) != handoff.RuleGrant {
		t.Errorf("%+v", p)
	}
	answered[problem](t, w.do("GET", "/capsules/missing/schema", ""), 404)
	answered[problem](t, w.do("GET", "/capsules/..%2fcallee/schema", ""), 404)
}

func TestARunSeesItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const root = `{"run":"00000000-0000-7000-8000-000000000001","root":"00000000-0000-7000-8000-000000000001","parent":null,"unit":"caller","depth":0,"deadline":null}` + "\n"
	if rec := w.do("GET", "/run", ""); rec.Body.String() != root {
		t.Error(rec.Body)
	}
	w.caller.Parent, w.caller.Root, w.caller.Deadline = idOf(9), idOf(9), time.Unix(1, 0)
	w.caller.Path = []handoff.Step{{Run: idOf(9), Unit: "root"}, {Run: idOf(1), Unit: "caller"}}
	w.renew()
	const below = `{"run":"00000000-0000-7000-8000-000000000001","root":"00000000-0000-7000-8000-000000000009","parent":"00000000-0000-7000-8000-000000000009","unit":"caller","depth":1,"deadline":"1970-01-01T00:00:01Z"}` + "\n"
	if rec := w.do("GET", "/run", ""); rec.Body.String() != below {
		t.Error(rec.Body)
	}
	if rec := w.do("GET", "/health", ""); rec.Body.String() != `{"service":"aod","status":"healthy"}`+"\n" {
		t.Error(rec.Body)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		half := 50.5
		if rec := w.do("POST", "/progress", `{"percent":50.5,"step":"a\u001b[2Jb","message":"é"}`); rec.Code != 204 || rec.Body.Len() != 0 {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		w.do("POST", "/progress", `{"percent":null}`)
		if diff := cmp.Diff([]handoff.Progress{{Percent: &half, Step: "a [2Jb", Message: "é"}, {}}, w.runs.Reports); diff != "" {
			t.Error(diff)
		}
		for body, status := range map[string]int{
			`{"percent":101}`: 422, `{"percent":-0.1}`: 422, `{"percent":"1"}`: 400, `{"other":1}`: 400, `[]`: 400, `{"percent":1e999}`: 400,
			`{"step":"` + strings.Repeat("x", 1025) + `"}`: 413, `{"message":"` + strings.Repeat("x", 20_000) + `"}`: 413,
		} {
			answered[problem](t, w.do("POST", "/progress", body), status)
		}
		for range 100 {
			if rec := w.do("POST", "/progress", `{"percent":1}`); rec.Code != 204 {
				t.Fatal(rec.Code)
			}
		}
		if len(w.runs.Reports) != 10 {
			t.Errorf("%d were taken", len(w.runs.Reports))
		}
		time.Sleep(time.Second) // of the bubble
		w.do("POST", "/progress", `{"percent":1}`)
		if len(w.runs.Reports) != 10+1 {
			t.Errorf("%d were taken", len(w.runs.Reports))
		}
	})
}

func TestAddressesAndMethods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/", "/x", "/handoff/", "/handoff/a/b", "//handoff", "/handoff/../run", "/capsules/callee", "/capsules//schema", "/Run"} {
		if p := answered[problem](t, w.do("GET", path, ""), 404); p.Code != "not_found" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	for request, allow := range map[string]string{
		"GET /handoff": "POST", "POST /handoff/x": "DELETE, GET", "POST /run": "GET", "PUT /progress": "POST", "TRACE /health": "GET", "HEAD /capsules": "GET",
	} {
		method, path, _ := strings.Cut(request, " ")
		rec := w.do(method, path, "")
		if answered[problem](t, rec, 405).Code != "method_not_allowed" || rec.Header().Get("Allow") != allow {
			t.Errorf("%s: %v", request, rec.Header())
		}
	}
}

func TestABodyHasToBeJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "", "application/json; x"} {
		rec := w.do("POST", "/handoff", `{"target":"callee"}`, "Content-Type: "+media)
		answered[problem](t, rec, 400)
	}
	if w.runs.Started() != 0 {
		t.Error("a call was made")
	}
	rec := w.do("POST", "/handoff", "", "Content-Type: Application/JSON; charset=utf-8")
	if p := answered[problem](t, rec, 400); !strings.Contains(p.Detail, "empty") {
		t.Errorf("%+v", p)
	}
}

func TestAPanicIsAProblemThatShowsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.calls = panicking{w.runs}
	w.renew()
	const times = 5 // more than are started at a time
	for range times {
		rec := w.do("POST", "/handoff", `{"target":"callee"}`)
		answered[problem](t, rec, 500)
		if strings.Contains(rec.Body.String()+w.log.String(), "s3cret") || !strings.Contains(w.log.String(), "panicked") {
			t.Error(rec.Body, w.log)
		}
	}
	if len(w.h.requests) != 0 || w.spent() != times {
		t.Error("a place was not given back")
	}
}

type panicking struct{ *handofftest.Runs }

func (panicking) Start(context.Context, handoff.Call) (string, error) { panic("s3cret") }

func TestAnOutputThatIsNoJSONIsAProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Outcome = func(id string, _ handoff.Call) handoff.Result {
		return handoff.Result{ID: id, Ended: true, Success: true, Output: []byte("{")}
	}
	w.call(500, `{}`)
}
