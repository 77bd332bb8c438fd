package capsuleapi

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestAColdProgramGetsItsInvocationAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller.Deadline, w.caller.Input = time.Unix(1, 0), []byte(`{"text": "<é>", "n": 1.0}`)
	w.renew()
	w.do("GET", "/run", "")
	if w.h.Asked() {
		t.Error("it asked for something else")
	}
	const want = `{"run":"00000000-0000-7000-8000-000000000001","root":"00000000-0000-7000-8000-000000000001","parent":null,"unit":"caller","depth":0,` +
		`"deadline":"1970-01-01T00:00:01Z","input":{"text":"<é>","n":1.0}}` + "\n"
	if rec := w.do("GET", "/invocation", ""); rec.Code != 200 || rec.Body.String() != want || !w.h.Asked() {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.caller.Input = nil
	w.renew()
	if rec := w.do("GET", "/invocation", ""); rec.Code != 200 || strings.Contains(rec.Body.String(), "input") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// posting is a world whose results are kept.
func posting(t testing.TB) *harness {
	t.Helper()
	w := newWorld(t)
	w.caller.Result = w.path("results/posted.json")
	w.renew()
	return w
}

func (w *harness) post(status int, result string) {
	w.t.Helper()
	rec := w.do("POST", "/invocation/result", result)
	if rec.Code != status || (status == 204) != (rec.Body.Len() == 0) {
		w.t.Errorf("%d %s, want %d", rec.Code, rec.Body, status)
	}
}

func TestThePostedResultThatCountsIsTheFirst(t *testing.T) {
	t.Parallel()
	w := posting(t)
	w.post(204, `{"n": 1.0, "t": "<é>"}`)
	w.post(204, `{"n": 1.0, "t": "<é>"}`)
	w.post(409, `{"n": 2}`)
	w.renew() // another process asks the file
	w.post(204, `{"n": 1.0, "t": "<é>"}`)
	w.post(409, `{"n": 2}`)
	if got := read(t, w.caller.Result); got != `{"n":1.0,"t":"<é>"}` {
		t.Error(got)
	}
	if entries, err := os.ReadDir(w.path("results")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestOfResultsPostedAtOnceOneIsKeptWhole(t *testing.T) {
	t.Parallel()
	w := posting(t)
	var posts sync.WaitGroup
	taken := make([]int, 8)
	for i := range taken {
		posts.Go(func() {
			taken[i] = w.do("POST", "/invocation/result", `{"by": `+string(rune('0'+i))+`}`).Code
		})
	}
	posts.Wait()
	kept, first := read(t, w.caller.Result), -1
	for i, status := range taken {
		if status == 204 && first < 0 {
			first = i
		} else if status != 409 {
			t.Errorf("post %d: %d after post %d", i, status, first)
		}
	}
	if first < 0 || kept != `{"by":`+string(rune('0'+first))+`}` {
		t.Errorf("post %d was taken, %s is kept", first, kept)
	}
}

func TestAPostedResultHasToBeOneBoundedObject(t *testing.T) {
	t.Parallel()
	w := posting(t)
	w.limits.ResultBytes = 100
	w.renew()
	for body, status := range map[string]int{
		`{"n":`: 400, `[1]`: 400, `1`: 400, ` `: 400, `{"a":1,"a":2}`: 400, `{} {}`: 400, "{\"a\":\"\xff\"}": 400,
		strings.Repeat(`{"a":`, 19) + "1": 400, `{"a":"` + strings.Repeat("x", 100) + `"}`: 413,
	} {
		w.post(status, body)
	}
	answered[problem](t, w.do("POST", "/invocation/result", `{}`, "Content-Type: text/plain"), 400)
	if entries, err := os.ReadDir(w.path("results")); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	w.post(204, `{"a":"`+strings.Repeat("x", 92)+`"}`)
}

func TestWhereNoResultIsTakenThereIsAnotherWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := answered[problem](t, w.do("POST", "/invocation/result", `{}`), 404)
	if !strings.Contains(p.Hint, "/io/output.json") {
		t.Errorf("%+v", p)
	}
}

func TestAResultThatCanNotBeKeptIsNotTaken(t *testing.T) {
	t.Parallel()
	w := posting(t)
	w.caller.Result = w.path("nowhere/posted.json")
	w.renew()
	w.post(500, `{"s3cret": 1}`)
	if log := w.log.String(); strings.Contains(log, "s3cret") || !strings.Contains(log, "keep the result") {
		t.Error(log)
	}
}

func TestAPostThatWaitsForItsTurnEndsWithTheServer(t *testing.T) {
	t.Parallel()
	w := posting(t)
	leave, err := w.h.program.result.lock(t.Context())
	must(t, err)
	defer leave()
	ended := endedRequest(t)
	if _, err := w.h.program.result.lock(ended.Context()); !errors.Is(err, ended.Context().Err()) {
		t.Error(err)
	}
	rec := serveOne(w.h, ended)
	if p := answered[problem](t, rec, 503); p.Code != fault.Unavailable.String() {
		t.Errorf("%+v", p)
	}
}
