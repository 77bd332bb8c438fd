package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAReaderOfEventsWhoComesAgainSeesEachOnceAndInOrder(t *testing.T) {
	t.Parallel()
	seed := number(t, "AOD_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("to be repeated with AOD_SEED=%d", seed)
	dice := rand.New(rand.NewPCG(uint64(seed), 0))
	s := newServer(t, "--retry-delay", "10ms")
	s.addWorker("eventful", unique()+strings.Repeat("RUN sleep 0.1\n", 8)) // its build has many events
	s.start()
	id := s.mustSubmit("eventful", work{Ticks: 10, Hold: 1}) // it outlasts the connections that break

	r := eventReading{server: s, id: id}
	const connections = 20
	for n := range connections {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(dice.Int64N(int64(400*time.Millisecond))), cancel) // the moment is the test
		r.read(ctx)
		cancel()
		if n == connections/2 {
			s.kill()
			s.start()
		}
	}
	broken := r.broken
	s.until(id, "runs", running)
	s.letGo(id)
	for !r.over { // a connection that is too short for anything makes no progress
		r.read(t.Context())
	}
	again := eventReading{server: s, id: id}
	again.read(t.Context())
	if diff := cmp.Diff(again.events, r.events); diff != "" {
		t.Errorf("who came again has not seen the same (-whole +pieces):\n%s", diff)
	}
	for i, e := range r.events {
		if !strings.HasPrefix(e, fmt.Sprintf("%d ", i+1)) {
			t.Errorf("event %d is %q", i+1, e)
		}
	}
	if broken < connections/2 || len(r.events) < 20 {
		t.Errorf("%d connections broke over %d events: that tells little", broken, len(r.events))
	}
	t.Logf("%d events over %d connections that broke, and a restart", len(r.events), broken)
	s.removeLater(s.await(id).Image.Ref)
}

// eventReading reads the events of a run as a browser does (HTML Living Standard,
// "Server-sent events"), over any number of connections.
type eventReading struct {
	server *server
	id     string
	last   string   // Last-Event-ID
	events []string // "ID TYPE DATA"
	over   bool     // the last of all was seen
	broken int
}

// read reads one connection to its end, or to that of ctx.
func (r *eventReading) read(ctx context.Context) {
	t := r.server.t
	t.Helper()
	response, err := r.server.get(ctx, "/v1/runs/"+r.id+"/events", map[string]string{"Last-Event-ID": r.last})
	if err != nil {
		r.broken++
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", response.Status, response.Header.Get("Content-Type"))
	}
	if err := r.lines(response.Body); err != nil {
		r.broken++
	}
}

// lines takes the stream apart. An event that isn't whole doesn't count.
func (r *eventReading) lines(body io.Reader) error {
	in := bufio.NewReader(body)
	var id, kind, data string
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if data == "" {
				continue // a comment
			}
			if _, err := strconv.Atoi(id); err != nil || r.over {
				r.server.t.Errorf("event %q of type %q is out of place", id, kind)
			}
			r.events = append(r.events, id+" "+kind+" "+data)
			r.last, r.over, data = id, kind == "end", ""
		}
	}
}
