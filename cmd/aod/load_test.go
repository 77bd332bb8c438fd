package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

const (
	submissions = 500 // and a few more, if all of these may wait
	loadedUnits = 5
	slots       = 4 // as many runs again may be cleaning up behind them
	maxMemory   = 200 << 20
)

func TestALoadLeavesTheServerAsItWas(t *testing.T) {
	all := long(t, "AOD_LOAD") // runs that may wait, of all units together
	waiting := all / loadedUnits
	s := newServer(t, "--concurrency", strconv.Itoa(slots), "--queue", strconv.Itoa(waiting), "--pool", "0")
	s.program = shipped.Path(t)
	l := load{server: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50, MaxConnsPerHost: 50}}}
	for i := range loadedUnits {
		s.addWorker(unitName(i), "")
	}
	s.start()
	for i := range loadedUnits { // images are built, connections are made
		s.await(s.mustSubmit(unitName(i), work{}))
	}
	before := l.footprint()

	held := l.holdSlots() // so that none of the runs begins before all are submitted
	began := time.Now()
	l.submitAll(max(submissions/loadedUnits, waiting+10))
	t.Logf("%d submissions in %v: %d accepted, %d refused", l.accepted()+l.refused, time.Since(began).Round(time.Millisecond), l.accepted(), l.refused)
	if least, most := loadedUnits*waiting, loadedUnits*waiting+2*slots+l.ended(); l.accepted() < least || l.accepted() > most {
		t.Errorf("%d runs were accepted, not between %d and %d", l.accepted(), least, most)
	}
	for _, id := range held {
		if _, err := s.client.Runs.Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
	}
	l.awaitAll()
	t.Logf("they took %v", time.Since(began).Round(time.Millisecond))
	l.checkOrder()
	l.checkFootprint(before, 0)
}

func unitName(i int) string { return "loaded-" + string(rune('a'+i)) }

// load is a server with more to do than it takes.
type load struct {
	*server
	http *http.Client

	mu      sync.Mutex
	ids     [loadedUnits][]string
	refused int
}

// submitAll submits a number of runs of each unit, all at once.
func (l *load) submitAll(each int) {
	var all sync.WaitGroup
	for unit := range loadedUnits {
		for range each {
			all.Go(func() { l.submit(unit) })
		}
	}
	all.Wait()
}

func (l *load) submit(unit int) {
	body := strings.NewReader(fmt.Sprintf(`{"unit":%q,"input":{}}`, unitName(unit)))
	request, err := http.NewRequest(http.MethodPost, l.url()+"/v1/runs", body)
	if err != nil {
		l.t.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+l.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := l.http.Do(request)
	if err != nil {
		l.t.Error(err)
		return
	}
	defer response.Body.Close()
	var answer struct{ ID, Code, Hint string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch response.StatusCode {
	case http.StatusAccepted:
		l.ids[unit] = append(l.ids[unit], answer.ID)
	case http.StatusTooManyRequests:
		l.refused++
		after, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil || after < 1 || answer.Code != "busy" || answer.Hint == "" {
			l.t.Errorf("a refusal says %+v, Retry-After %d, %v", answer, after, err)
		}
	default:
		l.t.Errorf("status %d, %+v", response.StatusCode, answer)
	}
}

// holdSlots returns runs that have all slots until they are cancelled.
func (l *load) holdSlots() (ids []string) {
	l.t.Helper()
	for i := range slots {
		ids = append(ids, l.mustSubmit(unitName(i), work{Ticks: 6000, Linger: 1}))
	}
	for _, id := range ids {
		l.awaitLine(id, "tick 1")
	}
	return ids
}

func (l *load) accepted() (n int) {
	for _, ids := range l.ids {
		n += len(ids)
	}
	return n
}

// ended is how many runs have left the queue and their slot by now.
func (l *load) ended() int { return l.accepted() - len(l.active()) }

func (l *load) awaitAll() {
	l.t.Helper()
	limit := time.Now().Add(5 * time.Minute)
	for len(l.active()) > 0 {
		if time.Now().After(limit) {
			l.t.Fatalf("%d runs go on for ever", len(l.active()))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// checkOrder wants the units to be served in turn: the k-th run of no unit begins after the (k+5)-th
// of another one. Runs that begin together may overtake each other by a little.
func (l *load) checkOrder() {
	const lead = 5
	var starts [loadedUnits][]time.Time
	for unit, ids := range l.ids {
		for _, id := range ids {
			record, err := l.client.Runs.Get(context.Background(), id)
			if err != nil || record.Outcome != api.Success || begun(record).IsZero() {
				l.t.Errorf("run %s: %s %+v %v", id, record.Outcome, record.Error, err)
				return
			}
			starts[unit] = append(starts[unit], begun(record))
		}
		slices.SortFunc(starts[unit], time.Time.Compare)
	}
	for a := range starts {
		if len(starts[a]) <= lead {
			l.t.Errorf("only %d runs of %s had to wait: that tells nothing", len(starts[a]), unitName(a))
		}
		for b := range starts {
			for k := range min(len(starts[a]), len(starts[b])-lead) {
				if starts[a][k].After(starts[b][k+lead]) {
					l.t.Errorf("run %d of %s began after run %d of %s", k, unitName(a), k+lead, unitName(b))
					return
				}
			}
		}
	}
}

// begun is when a run has left the queue, however long its program took to start.
func begun(record api.Record) (at time.Time) {
	for _, t := range record.Transitions {
		if t.State != api.Idle {
			return t.At
		}
	}
	return at
}
