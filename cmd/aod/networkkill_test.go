package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const (
	usualNetworkKills    = 2
	networkSchedulesKill = 5 // due at each kill
)

// carriage is a host that streams, by TLS and as an upstream, to each path until that is done.
type carriage struct {
	mu    sync.Mutex
	open  map[string]int // streams at this moment
	began map[string]int
	done  map[string]bool
}

func (c *carriage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	c.mu.Lock()
	c.open[path]++
	c.began[path]++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[path]--
	}()
	for r.Context().Err() == nil {
		if c.isDone(path) {
			_, _ = io.WriteString(w, "done")
			return
		}
		_, _ = io.WriteString(w, "tick\n")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *carriage) isDone(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[path]
}

func (c *carriage) finish(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[path] = true
}

// counts returns how many streams to a path are open, and how many there were.
func (c *carriage) counts(path string) (open, began int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[path], c.began[path]
}

// addCarrier gives the server a unit that reads streams of a host, and returns the host with its
// addresses for the unit: through a tunnel, and as an upstream.
func (s *server) addCarrier() (c *carriage, tunnel, upstream string) {
	s.t.Helper()
	c = &carriage{open: map[string]int{}, began: map[string]int{}, done: map[string]bool{}}
	secure, plain := httptest.NewUnstartedServer(c), httptest.NewServer(c)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are cut off
	secure.StartTLS()
	for _, host := range []*httptest.Server{secure, plain} {
		s.t.Cleanup(host.Close)
		s.t.Cleanup(host.CloseClientConnections)
	}
	_, port, _ := net.SplitHostPort(secure.Listener.Addr().String())
	program, err := os.ReadFile("testdata/carrier/main.py")
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(s.units, "carrier")
	write(s.t, string(program), dir, "src", "main.py")
	write(s.t, "import aod\n\naod.run()\n", dir, "run.py")
	write(s.t, "FROM aod/base\nCOPY . /capsule/\n", dir, "Dockerfile")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, dir, "schema.json")
	write(s.t, "[]\n", dir, "tools.yaml")
	write(s.t, "name: carrier\nupstreams: [svc]\negress: [good.example:"+port+"]\nlimits: {timeout: 5m}\n", dir, "agent.yaml")
	write(s.t, "key\n", s.data, "secrets", "svc-key")
	file := filepath.Join(s.data, "aod.yaml")
	write(s.t, fmt.Sprintf("upstreams:\n  svc: {url: '%s', secret: svc-key}\npolicy: {egress: [good.example:%s]}\negress_private: [good.example=127.0.0.1]\n", plain.URL, port), file)
	s.flags = append(s.flags, "--config", file)
	return c, "https://good.example:" + port, "http://127.0.0.1:7070/upstream/svc"
}

// A server that is killed while programs have tunnels and streams of upstreams, and schedules are
// due: programs see an error after which they can try again, nothing stays open, and no occurrence
// is lost or doubled.
func TestNoKillBreaksTheNetworkForGood(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	kills, dice := number(t, "AOD_KILLS", usualNetworkKills), dice(t)
	s := newServer(t, "--pool", "0", "--concurrency", strconv.Itoa(kills+9)) // of each kill a stream goes on until the end
	host, tunnel, upstream := s.addCarrier()
	s.addWorker("timely", unique())
	s.start()
	s.removeLater(s.await(s.mustSubmit("timely", work{})).Image.Ref) // its image is built before
	s.kill()
	occurrences := networkSchedulesKill * kills
	s.schedule(occurrences, time.Now().Add(2*time.Second))
	s.start()
	carried := map[string]string{} // runs, by the paths of their streams
	for kill := range kills {
		for way, base := range map[string]string{"tunnel": tunnel, "upstream": upstream} {
			path := fmt.Sprintf("/%s/%d", way, kill)
			carried[path] = s.carry(base + path)
		}
		for path := range carried {
			testkit.Eventually(t, path+" has its stream", func() bool { open, _ := host.counts(path); return open == 1 || host.isDone(path) })
		}
		time.Sleep(time.Duration(dice.IntN(1000)) * time.Millisecond)
		s.kill()
		for path := range carried {
			testkit.Eventually(t, "nothing of "+path+" is open", func() bool { open, _ := host.counts(path); return open == 0 })
		}
		s.start()
		finished := fmt.Sprintf("/%s/%d", []string{"tunnel", "upstream"}[dice.IntN(2)], kill)
		testkit.Eventually(t, finished+" has its stream again", func() bool { open, _ := host.counts(finished); return open == 1 })
		host.finish(finished)
	}
	for path, id := range carried {
		host.finish(path)
		s.wasCarried(path, s.await(id), host)
	}
	s.manyEnd(occurrences+1, api.Filter{Unit: "timely"}) // one of which was before them
	records := s.records()
	s.kill()
	s.judgeOccurrences(occurrences, scheduled(records))
}

// scheduled returns the runs that schedules began.
func scheduled(records map[string]api.Record) map[string]api.Record {
	some := map[string]api.Record{}
	for id, r := range records {
		if r.Schedule != nil {
			some[id] = r
		}
	}
	return some
}

// carry has a run of the carrier accepted, which reads the stream at an address.
func (s *server) carry(url string) string {
	s.t.Helper()
	input, _ := json.Marshal(map[string]string{"url": url})
	record, err := s.submit(s.t.Context(), client.Submission{Unit: "carrier", Input: input})
	if err != nil {
		s.t.Fatal(err)
	}
	return record.ID
}

// wasCarried checks a run of the carrier whose stream was cut off by at least one kill.
func (s *server) wasCarried(path string, r api.Record, host *carriage) {
	s.t.Helper()
	s.removeLater(r.Image.Ref)
	var got struct {
		Tries  int
		Broken []string
	}
	if err := json.Unmarshal(r.Output, &got); err != nil || r.Outcome != api.Success || r.Retries != 0 {
		s.t.Errorf("%s: %s after %d retries, %+v, %v", path, r.Outcome, r.Retries, r.Error, err)
	}
	_, began := host.counts(path)
	if got.Tries < 2 || len(got.Broken) != got.Tries-1 || began < 2 || began > got.Tries {
		s.t.Errorf("%s: %d streams of %+v", path, began, got)
	}
}

// manyEnd waits until as many runs have ended, for ten at a time.
func (s *server) manyEnd(n int, filter api.Filter) {
	s.t.Helper()
	for some := min(10, n); ; some = min(some+10, n) {
		testkit.Eventually(s.t, fmt.Sprintf("%d runs have ended", some), func() bool {
			ended := 0
			for run, err := range s.client.Runs.List(s.t.Context(), filter) {
				if err == nil && run.Outcome != "" {
					ended++
				}
			}
			return ended >= some
		})
		if some == n {
			return
		}
	}
}

// schedule stores schedules of one time each, while no server runs.
func (s *server) schedule(n int, from time.Time) {
	s.t.Helper()
	db := s.openStore()
	for i := range n {
		at := from.Add(time.Duration(i) * 200 * time.Millisecond).UTC()
		spec, err := json.Marshal(api.ScheduleSpec{Unit: "timely", At: at.Format(time.RFC3339Nano), Missed: api.MissedAll})
		if err != nil {
			s.t.Fatal(err)
		}
		now := time.Now()
		row := store.Schedule{
			Name: fmt.Sprintf("s%d", i), Unit: "timely", Spec: spec, Input: work{Mark: i}.input(), Private: []byte("null"),
			Until: now, CreatedAt: now, ChangedAt: now,
		}
		if _, err := db.Schedules.Put(s.t.Context(), row); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) openStore() *store.Store {
	s.t.Helper()
	db, err := store.Open(filepath.Join(s.home(), layout.Database), store.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

// judgeOccurrences finds one occurrence with one run of each schedule.
func (s *server) judgeOccurrences(n int, records map[string]api.Record) {
	s.t.Helper()
	db := s.openStore()
	defer db.Close()
	if len(records) != n {
		s.t.Errorf("there are %d runs of %d occurrences", len(records), n)
	}
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		row, err := db.Schedules.Get(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		all, err := db.Occurrences.List(s.t.Context(), row.Seq, 0, 0)
		if err != nil || len(all) != 1 || row.Fired != 1 || all[0].Outcome != string(api.OccurrenceStarted) {
			s.t.Errorf("%s has %+v, %v", name, all, err)
			continue
		}
		record := records[all[0].Run]
		if record.Schedule == nil || record.Schedule.Name != name || !record.Schedule.Planned.Equal(all[0].Planned) || record.Outcome != api.Success {
			s.t.Errorf("the run of %s is %s, of %+v", name, record.Outcome, record.Schedule)
		}
	}
}
