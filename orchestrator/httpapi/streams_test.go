package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func numbers(events []sent) []int64 {
	var ids []int64
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestEventsComeOnceAndInOrderAndResume(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	path := "/v1/runs/" + s.run(`{}`).ID + "/events"
	all := readEvents(t, s.do("GET", path, "").wants(t, 200).body)
	if last := all[len(all)-1]; last.Event != "end" || all[0].ID != 1 || !slices.IsSorted(numbers(all)) {
		t.Fatalf("events %v", all)
	}
	for _, c := range []struct{ query, header string }{{"?after=2", "X: y"}, {"", "Last-Event-ID: 2"}, {"?after=0", "Last-Event-ID: 2"}} {
		rest := readEvents(t, s.do("GET", path+c.query, "", c.header).wants(t, 200).body)
		if diff := cmp.Diff(numbers(all[2:]), numbers(rest)); diff != "" {
			t.Errorf("%v: %s", c, diff)
		}
	}
	for _, beyond := range []int64{all[len(all)-1].ID, all[len(all)-1].ID + 1, math.MaxInt64} { // an EventSource would come again for ever
		rest := readEvents(t, s.do("GET", path, "", fmt.Sprintf("Last-Event-ID: %d", beyond)).wants(t, 200).body)
		if diff := cmp.Diff(all[len(all)-1:], rest); diff != "" {
			t.Errorf("after %d: %s", beyond, diff)
		}
	}
	for _, bad := range []string{"x", "-1", "1.5", "99999999999999999999", "1 2"} {
		s.do("GET", path, "", "Last-Event-ID: "+bad).wants(t, 400)
	}
	s.do("GET", path+"?after=-1", "").wants(t, 400)
	s.do("GET", "/v1/runs/00000000-0000-7000-8000-000000000000/events", "").wants(t, 404)
}

func TestEventsComeWhileTheRunGoesOn(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.begin()
	resp, err := client.Do(s.request("GET", "/v1/runs/"+id+"/events", ""))
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"running"`) {
		continue
	}
	s.release <- struct{}{}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(lines.Text()+string(rest), "running") {
		t.Errorf("%v, %q", err, rest)
	}
	var tail []byte
	for lines.Scan() {
		tail = append(append(tail, lines.Bytes()...), '\n')
	}
	if all := string(tail) + string(rest); !strings.Contains(all, "event: end") {
		t.Errorf("it ended with %q", all)
	}
}

func TestALogIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	a := s.do("POST", "/v1/runs", `{"unit":"actor","input":{"do":"wait","say":"<hello>"}}`).wants(t, 202)
	id := decode[api.Record](t, a).ID
	resp, err := client.Do(s.request("GET", "/v1/runs/"+id+"/logs?follow=true", ""))
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), "<hello>") {
		t.Errorf("first line %q", lines.Text())
	}
	s.release <- struct{}{}
	for lines.Scan() {
		continue
	}
	must(t, lines.Err())
	texts := strings.Fields(s.do("GET", "/v1/runs/"+id+"/logs", "").wants(t, 200).body)
	slices.Sort(texts)
	if diff := cmp.Diff([]string{"<hello>", "<hello>", "err", "out"}, texts); diff != "" {
		t.Error(diff)
	}
	s.do("GET", "/v1/runs/"+id+"/logs?follow=1", "").wants(t, 400)
	s.do("GET", "/v1/runs/00000000-0000-7000-8000-000000000000/logs", "").wants(t, 404)
}

func TestPartsOfALogAreReadByTheNumbersOfTheirLines(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	a := s.do("POST", "/v1/runs", `{"unit":"actor","input":{"do":"wait","say":"1\n2\n3"}}`).wants(t, 202)
	path := "/v1/runs/" + decode[api.Record](t, a).ID + "/logs"
	read := func(query string) (got []api.LogEntry) {
		t.Helper()
		body := s.do("GET", path+query, "", "Accept: "+ndjson).wants(t, 200).body
		for line := range strings.Lines(body) {
			var entry api.LogEntry
			must(t, json.Unmarshal([]byte(line), &entry))
			got = append(got, entry)
		}
		return got
	}
	s.until(func() bool { return len(read("")) == 6 })
	all := read("")
	for query, want := range map[string][]api.LogEntry{
		"?tail=2": all[4:], "?tail=9": all, "?before=3": all[:2], "?before=5&tail=3": all[1:4], "?after=4": all[4:], "?after=9": nil,
	} {
		if diff := cmp.Diff(want, read(query)); diff != "" || all[0].Line != 1 {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for _, bad := range []string{"tail=0", "tail=-1", "tail=x", "before=0", "after=-1", "before=2&follow=true"} {
		s.do("GET", path+"?"+bad, "").wants(t, 400)
	}
	resp, err := client.Do(s.request("GET", path+"?tail=1&follow=true", "", "Accept: "+ndjson))
	must(t, err)
	defer resp.Body.Close()
	followed := json.NewDecoder(resp.Body)
	var entry api.LogEntry
	if err := followed.Decode(&entry); err != nil || entry.Line != 6 {
		t.Errorf("line %d: %v", entry.Line, err)
	}
	s.release <- struct{}{}
	if err := followed.Decode(&entry); !errors.Is(err, io.EOF) {
		t.Errorf("line %d follows: %v", entry.Line, err)
	}
}

func TestTheEndOfTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.begin()
	events := make([]*http.Response, 8) // an error that comes with the end must lose every race
	for i := range events {
		var err error
		events[i], err = client.Do(s.request("GET", "/v1/runs/"+id+"/events", ""))
		must(t, err)
		defer events[i].Body.Close()
	}
	log, err := client.Do(s.request("GET", "/v1/runs/"+id+"/logs?follow=true", ""))
	must(t, err)
	defer log.Body.Close()
	waited := make(chan answer, 1)
	go func() {
		waited <- s.do("POST", "/v1/runs?wait=5m", `{"unit":"actor","input":{"do":"wait"}}`)
	}()
	s.until(func() bool {
		return len(decode[api.Page](t, s.do("GET", "/v1/runs?state=running", "").wants(t, 200)).Runs) == 2
	})
	s.stop()
	for _, e := range events {
		if _, err := io.ReadAll(e.Body); err != nil {
			t.Errorf("the events broke off: %v", err)
		}
	}
	if _, err := io.ReadAll(log.Body); err == nil {
		t.Error("a log that is not whole looks as if it were")
	}
	if a := <-waited; a.StatusCode != http.StatusAccepted || a.Header.Get("Location") == "" {
		t.Errorf("who waits is told %d %s", a.StatusCode, a.body)
	}
	if text := s.log.String(); strings.Contains(text, "request failed") {
		t.Errorf("the end of the server isn't a failure: %s", text)
	}
}

// newRecorded returns a streamer over a recorder.
func newRecorded() (*streamer, *httptest.ResponseRecorder) {
	w := httptest.NewRecorder()
	return newStreamer(echo.New().NewContext(request("GET", "/", ""), w), "text/event-stream"), w
}

func TestASilentStreamShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := newRecorded()
		events := make(chan happening)
		sending := make(chan error)
		go func() { sending <- sendEvents(httpwire.NewEventWriter(out), events, nil) }()
		time.Sleep(10 * time.Second)
		events <- happening{Value: api.Event{Seq: 1, Type: "warning", Data: []byte("{\n\"message\": \"a\\nb\"}")}}
		time.Sleep(29 * time.Second)
		close(events)
		must(t, <-sending)
		want := "id: 1\nevent: warning\ndata: {\"message\":\"a\\nb\"}\n\n: still here\n\n"
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAStreamEndsWithAnError(t *testing.T) {
	t.Parallel()
	out, _ := newRecorded()
	events := make(chan happening, 1)
	broken := errors.New("disk away")
	events <- happening{Err: broken}
	if err := sendEvents(httpwire.NewEventWriter(out), events, nil); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestAttachedEndsWithEither(t *testing.T) {
	t.Parallel()
	serving, end := context.WithCancel(trusted.Context(t))
	defer end()
	outer, leave := context.WithCancel(httpwire.Outliving(serving))
	defer leave()
	first, stop := httpwire.Attached(outer)
	defer stop()
	end()
	<-first.Done()
	if outer.Err() != nil || !errors.Is(context.Cause(first), httpwire.ErrServerEnds) {
		t.Errorf("request %v, stream %v", outer.Err(), context.Cause(first))
	}
	leave()
	<-outer.Done()
}
