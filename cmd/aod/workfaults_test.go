package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// Each of these was a run that didn't end: TestAPartitionLosesNothing found some of them.

// dropped has requests of a kind never come to the server, and counts them.
func (r *road) dropped(part string) (asked *atomic.Int32) {
	asked = new(atomic.Int32)
	r.strays(func(request *http.Request) time.Duration {
		if !strings.Contains(request.URL.Path, part) {
			return 0
		}
		asked.Add(1)
		return lostForGood
	})
	return asked
}

// What a worker has accepted it accepts again after its start, while its attempt hasn't begun.
func TestAWorkerEndsBeforeItsAttemptBegins(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 2)
	asked := w.road.dropped("/" + wire.Unit)
	id := f.job(jobOrders{Mark: "a"})
	testkit.Eventually(t, "it fetches the unit", func() bool { return asked.Load() > 0 })
	w.again()
	f.succeeded(id)
}

// What a worker said to hold when it asked for orders is not what it holds when that comes late.
func TestARequestForOrdersComesLate(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 2)
	came := make(chan struct{})
	var asked atomic.Int32
	w.road.strays(func(r *http.Request) time.Duration {
		if r.URL.Path != wire.Orders || asked.Add(1) > 1 {
			return 0
		}
		go func() {
			time.Sleep(700 * time.Millisecond) // 200 after it is sent on
			close(came)
		}()
		return 500 * time.Millisecond
	})
	w.road.CloseClientConnections()
	testkit.Eventually(t, "it has asked again", func() bool { return asked.Load() > 1 })
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	<-came
	f.letGo("a")
	f.succeeded(id)
}

// The server answers what a program asks when it knows that it runs.
func TestAProcessTellsWhatTheOneBeforeItCouldNot(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 2)
	asked := w.road.dropped("/" + wire.Report)
	id := f.job(jobOrders{Mark: "a", Calls: []string{"b"}})
	testkit.Eventually(t, "it tells that the program runs", func() bool { return asked.Load() > 0 && f.begun("a") > 0 })
	w.again()
	f.succeeded(id)
}

func TestACancelComesBeforeTheAnswerOfAnAccept(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 2)
	var accepts atomic.Int32
	w.road.loses(func(r *http.Request) bool { return r.URL.Path == wire.Accept && accepts.Add(1) > 0 })
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.until(id, "is the worker's", func(r api.Record) bool { return r.State == api.Starting })
	if _, err := f.client.Runs.Cancel(t.Context(), id, "nobody wants it"); err != nil {
		t.Fatal(err)
	}
	before := accepts.Load()
	testkit.Eventually(t, "the worker has got the order meanwhile", func() bool { return accepts.Load() > before+1 })
	w.road.heals()
	if r := f.await(id); r.Outcome != api.WasCancelled || f.begun("a") != 0 {
		t.Errorf("%s, begun %d times, %+v", r.Outcome, f.begun("a"), r.Error)
	}
}

func TestAWorkerIsRemovedWhileItSendsAFile(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("gone", 1)
	asked := w.road.dropped("/" + wire.Output + "/")
	id := f.job(jobOrders{Mark: "a", Bytes: 1 << 16})
	testkit.Eventually(t, "it sends the file", func() bool { return asked.Load() > 0 })
	if err := f.client.Workers.Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	w.road.heals()
	testkit.Eventually(t, "it has ended", func() bool { return pause.Over(w.ended) })
	w.awaitEmpty()
	f.worker("other", 1)
	if r := f.await(id); r.Outcome != api.Success || r.Worker != "other" {
		t.Errorf("%s at %q, %+v", r.Outcome, r.Worker, r.Error)
	}
}

// A server that ends doesn't wait for what its workers ask: the next one answers.
func TestAServerEndsWhileItsWorkersAsk(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 1)
	id := f.job(jobOrders{Mark: "a", Calls: []string{"b"}, Holds: true})
	f.awaitBegun("b")
	w.road.rests()
	began := time.Now()
	f.kill()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	f.letGo("b")
	f.start()
	f.succeeded(id)
}

func TestAServerEndsThoughTheWorkerOfACancelledRunIsAway(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 1)
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.until(id, "runs", running)
	w.road.is(-1)
	if _, err := f.client.Runs.Cancel(t.Context(), id, "nobody wants it"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.kill()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	f.start()
	w.road.heals()
	if r := f.await(id); r.Outcome != api.WasCancelled {
		t.Errorf("%s, %+v", r.Outcome, r.Error)
	}
}
