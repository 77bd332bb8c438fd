package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// happened are a run's events as a server tells them.
func happened(w io.Writer, from, to, last int) {
	for seq := from; seq <= to; seq++ {
		kind := "state"
		if seq == last {
			kind = "end"
		}
		_, _ = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: {\"n\":%d}\n\n", seq, kind, seq)
	}
}

// numbers reads a stream of events to its end.
func numbers(c *Client, ctx context.Context, after int64) (got []int64, err error) { //nolint:revive // the client is what is tested
	for e, failed := range c.Runs.Events(ctx, runID, after) {
		if failed != nil {
			return got, failed
		}
		got = append(got, e.Seq)
	}
	return got, nil
}

func TestEventsEndWithTheRun(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/runs/"+runID+"/events" || r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, ": a heartbeat\n\nretry: 5\n\nid: 1\nevent: warning\ndata: {\"message\":\ndata: \"two lines\"}\r\n\r\n")
		happened(w, 2, 2, 2)
		_, _ = io.WriteString(w, ": what comes now is too late\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	var got []api.Event
	for e, err := range c.Runs.Events(t.Context(), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []api.Event{
		{Seq: 1, Type: api.EventWarning, Data: json.RawMessage("{\"message\":\n\"two lines\"}")},
		{Seq: 2, Type: api.EventEnd, Data: json.RawMessage(`{"n":2}`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEventsGoOnWhereTheConnectionWasLost(t *testing.T) {
	const last = 30
	var connections int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		connections++
		after, _ := strconv.Atoi(r.Header.Get("Last-Event-ID"))
		from := max(1, after) // one of them again
		happened(w, from, min(from+2, last), last)
		switch {
		case from+2 >= last:
		case connections%3 == 0: // an orderly end that comes too soon
		case connections%3 == 1:
			_, _ = fmt.Fprintf(w, "id: %d\nevent: state\ndata: {\"n\"", from+3)
			cut(w)
		default:
			_, _ = fmt.Fprintf(w, "id: %d\nevent: end\ndata: {}\n", from+3) // whole but for its end
			cut(w)
		}
	})
	got, err := numbers(c, t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []int64
	for n := int64(1); n <= last; n++ {
		want = append(want, n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEventsBeginAfterTheOneThatIsKnown(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Last-Event-ID"); got != "7" {
			t.Errorf("Last-Event-ID: %s", got)
		}
		happened(w, 8, 9, 9)
	})
	if got, err := numbers(c, t.Context(), 7); err != nil || !cmp.Equal(got, []int64{8, 9}) {
		t.Errorf("events %v, error %v", got, err)
	}
}

func TestAServerThatStaysAwayIsGivenUp(t *testing.T) {
	for _, connected := range []bool{false, true} {
		var tries int
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries == 1 && connected {
				happened(w, 1, 1, 2)
			}
			cut(w)
		})
		_, err := numbers(c, t.Context(), 0)
		wantFault(t, err, fault.Unavailable, "is aod serve running")
		want := callTries
		if connected {
			want = streamTries
		}
		if tries != want {
			t.Errorf("tried %d times, want %d", tries, want)
		}
	}
}

func TestAStreamThatIsNone(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	half := "data: " + strings.Repeat("x", maxLine/2+1) + "\n"
	for name, body := range map[string]string{
		"an id that isn't a number": "id: x\nevent: state\ndata: {}\n\n",
		"an id below one":           "id: 0\nevent: state\ndata: {}\n\n",
		"no id":                     "event: state\ndata: {}\n\n",
		"no type":                   "id: 1\ndata: {}\n\n",
		"data that isn't JSON":      "id: 1\nevent: state\ndata: {\n\n",
		"a line without an end":     "data: " + long,
		"data without an end":       half + half + half,
	} {
		t.Run(name, func(t *testing.T) {
			var tries int
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				tries++
				_, _ = io.WriteString(w, body)
			})
			got, err := numbers(c, t.Context(), 0)
			wantFault(t, err, fault.Unavailable, "can't be understood")
			if len(got) > 0 || tries != 1 {
				t.Errorf("events %v after %d tries", got, tries)
			}
		})
	}
}

func TestEventsOfARunThatIsNotThere(t *testing.T) {
	c := serve(t, answer(404, "application/problem+json", `{"code":"not_found","detail":"there is no such run"}`))
	_, err := numbers(c, t.Context(), 0)
	wantFault(t, err, fault.NotFound, "no such run")
	for _, err := range c.Runs.Events(t.Context(), "../x", 0) {
		wantFault(t, err, fault.Input, "not the id")
	}
}

func TestWhoeverStopsListeningIsLeftAlone(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		happened(w, 1, 5, 9)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	for e, err := range c.Runs.Events(t.Context(), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 3 {
			break
		}
	}
	<-gone
}

func TestACancelledContextEndsTheEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		happened(w, 1, 1, 9)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	var failed error
	for _, err := range c.Runs.Events(ctx, runID, 0) {
		failed = err
		cancel()
	}
	if !errors.Is(failed, context.Canceled) {
		t.Errorf("error %v", failed)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\nevent: state\ndata: {}\n\n"))
	f.Add([]byte(": comment\n\nid:2\nevent:end\ndata: {\ndata: }\n\n"))
	f.Add([]byte("id: 99999999999999999999\n\n\n:\ndata\n"))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		reader := httpwire.NewEventReader(bytes.NewReader(raw), eventLimits)
		for {
			told, err := reader.Next()
			if err != nil {
				return
			}
			event, err := eventOf(told)
			if err == nil && (event.Seq < 1 || event.Type == "" || !json.Valid(event.Data)) {
				t.Fatalf("took %+v for an event", event)
			}
			if int64(len(told.Data)) > eventLimits.Event {
				t.Fatal("more is kept than is allowed")
			}
		}
	})
}

func wrote(w io.Writer, from, to int) {
	for n := from; n <= to; n++ {
		_, _ = fmt.Fprintf(w, `{"line":%[1]d,"time":"2026-01-02T03:04:05Z","stream":"stdout","text":"line %[1]d"}`+"\n", n)
	}
}

func texts(t *testing.T, c *Client, follow bool) (got []string, err error) {
	t.Helper()
	for entry, failed := range c.Runs.Log(t.Context(), runID, api.LogFilter{Follow: follow}) {
		if failed != nil {
			return got, failed
		}
		got = append(got, entry.Text)
	}
	return got, nil
}

func lines(n int) (want []string) {
	for i := 1; i <= n; i++ {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	return want
}

func TestALogComesOnceOverLostConnections(t *testing.T) {
	for _, follow := range []bool{false, true} {
		var connections int
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/logs") {
				_, _ = fmt.Fprintf(w, `{"id":%q,"finished_at":"2026-01-02T03:04:05Z"}`, runID)
				return
			}
			if (r.URL.Query().Get("follow") == "true") != follow {
				t.Errorf("asked for %s", r.URL)
			}
			after, _ := strconv.Atoi(r.URL.Query().Get("after"))
			if connections++; connections < 5 {
				wrote(w, after+1, 2*connections)
				_, _ = io.WriteString(w, `{"text":"half a li`)
				cut(w)
			}
			wrote(w, after+1, 10)
		})
		got, err := texts(t, c, follow)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(10), got); diff != "" {
			t.Error(diff)
		}
	}
}

// An older server numbers no lines, begins each connection with the first, and knows no parameter but follow.
func TestALogOfAnOlderServerComesOnceOverLostConnections(t *testing.T) {
	var connections int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/logs") {
			_, _ = fmt.Fprintf(w, `{"id":%q,"finished_at":"2026-01-02T03:04:05Z"}`, runID)
			return
		}
		if connections++; r.URL.RawQuery != "follow=true" {
			t.Errorf("connection %d asks for %q", connections, r.URL.RawQuery)
		}
		for i := range min(2*connections, 6) {
			_, _ = fmt.Fprintf(w, `{"text":"line %d"}`+"\n", i+1)
		}
		if connections < 3 {
			cut(w)
		}
	})
	got, err := texts(t, c, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(6), got); diff != "" {
		t.Error(diff)
	}
}

func TestAFollowedLogOutlivesItsServer(t *testing.T) {
	var connections int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/logs") {
			connections++
			wrote(w, connections, connections) // and an orderly end
			return
		}
		finished := "null"
		if connections == 4 {
			finished = `"2026-01-02T03:04:05Z"`
		}
		_, _ = fmt.Fprintf(w, `{"id":%q,"finished_at":%s}`, runID, finished)
	})
	got, err := texts(t, c, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(4), got); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheEndOfALogIsAskedFor(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.URL.RawQuery); len(asked) == 1 {
			wrote(w, 8, 8)
			cut(w)
		}
		wrote(w, 9, 10)
	})
	var got []int64
	for entry, err := range c.Runs.Log(t.Context(), runID, api.LogFilter{Tail: 3, After: 2, Before: 11}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry.Line)
	}
	if diff := cmp.Diff([]int64{8, 9, 10}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"after=2&before=11&tail=3", "after=8&before=11"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestALogThatIsNone(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":               "hello\n",
		"lines that go back":    `{"line":2}` + "\n" + `{"line":1}` + "\n",
		"a line without an end": `{"text":"` + strings.Repeat("x", maxLine),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := texts(t, serve(t, answer(200, "application/x-ndjson", body)), false)
			wantFault(t, err, fault.Unavailable, "can't be understood")
		})
	}
}

func TestALogIsLeftEarly(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		wrote(w, 1, 5)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	for _, err := range c.Runs.Log(t.Context(), runID, api.LogFilter{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	<-gone
}
