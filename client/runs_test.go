package client

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func TestRunsGoOverAllPages(t *testing.T) {
	var queries []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		page := len(queries)
		next := fmt.Sprintf(`"p%d"`, page+1)
		if page == 3 {
			next = "null"
		}
		_, _ = fmt.Fprintf(w, `{"runs":[{"id":"%d-a"},{"id":"%d-b"}],"next":%s}`, page, page, next)
	})
	var got []string
	filter := api.Filter{
		Unit: "a&b", Parent: "p", By: "ci", Roots: true, Active: true, Limit: 2,
		States: []api.State{api.Idle, api.Running},
		Since:  time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
	}
	for run, err := range c.Runs.List(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, run.ID)
	}
	if diff := cmp.Diff([]string{"1-a", "1-b", "2-a", "2-b", "3-a", "3-b"}, got); diff != "" {
		t.Error(diff)
	}
	const rest = "limit=2&made_by=ci&parent=p&roots=true&since=2026-01-02T02%3A04%3A05.000000006Z&state=idle%2Crunning&unit=a%26b"
	if diff := cmp.Diff([]string{"active=true&" + rest, "active=true&cursor=p2&" + rest, "active=true&cursor=p3&" + rest}, queries); diff != "" {
		t.Error(diff)
	}
}

func TestRunsAskForNoPageThatNobodyReads(t *testing.T) {
	var asked int
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"runs":[{"id":"a"},{"id":"b"}],"next":"more"}`)
	})
	for range c.Runs.List(t.Context(), api.Filter{}) {
		break
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestAListThatLeadsNowhere(t *testing.T) {
	for _, page := range []string{`{"runs":[{"id":"a"}],"next":"same"}`, `{"runs":[],"next":"p"}`} {
		c := serve(t, answer(200, "application/json", page))
		var failed error
		for _, failed = range c.Runs.List(t.Context(), api.Filter{}) {
		}
		wantFault(t, failed, fault.Unavailable, "can't be understood")
	}
}

func TestOutputIsTheDocumentItself(t *testing.T) {
	c := serve(t, answer(200, "application/json", `{"n":1e400,"s":"<"}`+"\n"))
	got, err := c.Runs.Output(t.Context(), runID)
	if err != nil || string(got) != `{"n":1e400,"s":"<"}` {
		t.Errorf("output %s, error %v", got, err)
	}
	c = serve(t, answer(409, "application/problem+json", `{"code":"conflict","detail":"it goes on"}`))
	_, err = c.Runs.Output(t.Context(), runID)
	wantFault(t, err, fault.Conflict, "it goes on")
}

func TestCancelTellsWhy(t *testing.T) {
	var sent string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		sent = r.Method + " " + r.URL.Path + " " + string(raw)
		w.WriteHeader(http.StatusAccepted)
		writeRecord(w, "running")
	})
	if _, err := c.Runs.Cancel(t.Context(), runID, "not needed"); err != nil {
		t.Fatal(err)
	}
	if want := "POST /v1/runs/" + runID + `/cancel {"reason":"not needed"}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
}

func TestFilesAndUnitsAreLists(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"files":[{"name":"x","size_bytes":3}],"units":[{"name":"hello","problem":{"message":"broken"}}],"input":{}}`)
	})
	files, err := c.Files.List(t.Context(), runID)
	if err != nil || len(files) != 1 || files[0].SizeBytes != 3 {
		t.Errorf("files %v, error %v", files, err)
	}
	units, err := c.Units.List(t.Context())
	if err != nil || len(units) != 1 || units[0].Problem == nil {
		t.Errorf("units %v, error %v", units, err)
	}
	if _, err := c.Units.Get(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
	schema, err := c.Units.Schema(t.Context(), "hello")
	if err != nil || len(schema) == 0 {
		t.Errorf("schema %s, error %v", schema, err)
	}
}

func TestThePoolIsRead(t *testing.T) {
	var asked string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.RequestURI()
		_, _ = io.WriteString(w, `{"size":8,"waiting":1,"memory_bytes":1024,"used_bytes":64,"units":[{"unit":"hello","wanted":1,"hits":3,
			"waiting":[{"id":"`+runID+`","container":"c1","loaded":true,"since":"2026-01-02T03:04:05Z"}]}]}`)
	})
	got, err := c.Pool(t.Context())
	if err != nil || asked != "GET /v1/pool" {
		t.Fatalf("asked %s, error %v", asked, err)
	}
	want := api.PoolStats{Size: 8, Waiting: 1, MemoryBytes: 1024, UsedBytes: 64, Units: []api.PoolUnit{{
		Unit: "hello", Wanted: 1, Hits: 3,
		Waiting: []api.PoolSandbox{{ID: runID, Container: "c1", Loaded: true, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAListIsReadAnewEachTime(t *testing.T) {
	var queries []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		next := "null"
		if !r.URL.Query().Has("after") {
			next = "7"
		}
		_, _ = fmt.Fprintf(w, `{"steps":[{"address":"a"}],"next":%s}`, next)
	})
	steps := c.Flows.Steps(t.Context(), runID)
	for range 2 {
		for _, err := range steps {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"limit=1000", "after=7&limit=1000", "limit=1000", "after=7&limit=1000"}, queries); diff != "" {
		t.Error(diff)
	}
}
