package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

// What a round has where nobody says more; `make partition` does.
const (
	usualPartitions    = 3
	usualPartitionRuns = 12
)

// partitionGrace is after how long a worker that is away counts as lost: some partitions take longer.
const partitionGrace = 2 * time.Second

// partitionPatience is far longer than anything takes when all is healed.
const partitionPatience = time.Minute

// Roads are cut, answers and requests get lost or come late, processes end and begin again, workers are drained and
// replaced, all at random, while runs go on: each run that was accepted comes to its end, with all that it has, and what
// may have had an effect is begun once. A seed that fails is tried again with AOD_PARTITION_SEED=seed AOD_PARTITIONS=1.
func TestAPartitionLosesNothing(t *testing.T) {
	rounds, runs := number(t, "AOD_PARTITIONS", usualPartitions), number(t, "AOD_PARTITION_RUNS", usualPartitionRuns)
	usual := 1 // a test of the suite disturbs in the same way each time
	if rounds != usualPartitions {
		usual = int(time.Now().UnixNano() % 1e9)
	}
	first := number(t, "AOD_PARTITION_SEED", usual)
	f := fleetOf(t, partitionGrace.String())
	f.inside = nil // without containers of its own it needs no engine: it is a process that can be killed
	f.start()
	p := &partition{fleet: f}
	for i, name := range []string{"one", "two", "three"} {
		p.workers = append(p.workers, f.worker(name, 2+i))
	}
	for seed := first; seed < first+rounds; seed++ {
		p.round(seed, runs)
	}
	if strings.Contains(f.log(), "DATA RACE") {
		t.Error(f.log())
	}
	t.Logf("%d runs, %d of them again elsewhere, %d worker_lost, %d cancelled", p.all, p.again, p.lost, p.cancelled)
}

// partition is a fleet that is disturbed, round after round.
type partition struct {
	*fleet
	workers []*far
	joined  int // workers that have come in the place of others

	all, again, lost, cancelled int // runs, for the log
}

// round disturbs a fleet that has some runs, heals it, and judges what became of them.
func (p *partition) round(seed, runs int) {
	began := time.Now()
	p.t.Logf("to be repeated with AOD_PARTITION_SEED=%d AOD_PARTITIONS=1 AOD_PARTITION_RUNS=%d", seed, runs)
	r := &partitionRound{partition: p, seed: seed, dice: rand.New(rand.NewPCG(uint64(seed), 0))}
	deeds := r.disturbances(r.submissions(runs))
	slices.SortStableFunc(deeds, func(a, b deed) int { return int(a.at - b.at) })
	for _, d := range deeds {
		// the pauses of the disturber are what is tested: the time for which a thing is in a bad state
		time.Sleep(time.Until(began.Add(d.at)))
		r.notef("%s", d.what)
		d.do()
	}
	r.heal()
	healed := time.Since(began)
	r.submitting.Wait()
	r.judge()
	p.t.Logf("seed %d: healed after %v, over after %v", seed, healed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// partitionRound is one round. Its deeds are done one after the other.
type partitionRound struct {
	*partition
	seed int
	dice *rand.Rand // for what is planned; what requests ask for has one of its own

	serverAway bool
	away       [3]bool // processes of workers

	submitting sync.WaitGroup
	mu         sync.Mutex
	runs       []*partitionRun
	story      []string
}

// partitionRun is a run that a round submits.
type partitionRun struct {
	unit string
	todo jobOrders

	// The round's lock is held for them.
	id     string
	cancel bool // somebody may have cancelled it
}

// deed is what happens at a moment of a round.
type deed struct {
	at   time.Duration
	what string
	do   func()
}

// notef adds to the story that a failure tells.
func (r *partitionRound) notef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.story = append(r.story, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// failf has the test fail, with how to repeat it.
func (r *partitionRound) failf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("seed %d: "+format, append([]any{r.seed}, args...)...)
}

// between is a random time.
func (r *partitionRound) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.dice.Int64N(int64(most-least)))
}

// submissions are the deeds that submit runs.
func (r *partitionRound) submissions(runs int) (deeds []deed, span time.Duration) {
	span = max(1200*time.Millisecond, time.Duration(runs)*60*time.Millisecond)
	for i := range runs {
		own := &partitionRun{unit: "job", todo: r.orders(fmt.Sprintf("%d/%d/%d", r.seed, r.joined, i))}
		if r.dice.IntN(3) == 0 {
			own.unit = "effective"
		}
		r.runs = append(r.runs, own)
		deeds = append(deeds, deed{r.between(0, span), "submit " + own.todo.Mark, func() { r.submit(own) }})
	}
	return deeds, span
}

// orders are what a run does, at random.
func (r *partitionRound) orders(mark string) jobOrders {
	todo := jobOrders{Mark: mark, MS: 5 + r.dice.IntN(300)}
	if r.dice.IntN(2) == 0 {
		todo.Lines = r.dice.IntN(400)
	}
	if r.dice.IntN(3) == 0 {
		todo.Bytes = r.dice.IntN(1<<16) &^ 15
	}
	switch r.dice.IntN(5) {
	case 0:
		todo.Deep = 1 + r.dice.IntN(3)
	case 1:
		for n := range 1 + r.dice.IntN(3) {
			todo.Calls = append(todo.Calls, fmt.Sprint(mark, "-", n))
		}
	}
	return todo
}

// submit has a run accepted beside all else, however long that takes.
func (r *partitionRound) submit(own *partitionRun) {
	r.submitting.Go(func() {
		record, err := r.fleet.submit(context.Background(), client.Submission{
			Unit: own.unit, Input: servicetest.JSON(own.todo), Key: own.todo.Mark,
		})
		if err != nil {
			r.failf("%s isn't accepted: %v", own.todo.Mark, err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		own.id = record.ID
	})
}

// disturbances adds what disturbs.
func (r *partitionRound) disturbances(deeds []deed, span time.Duration) []deed {
	kinds := []func(at time.Duration, n int) []deed{
		r.cut, r.cut, r.refuse, r.lose, r.lose, r.late, r.stray, r.restart, r.restart, r.drain, r.cancelOne, r.endServer, r.endServer,
	}
	for range 3 + len(r.runs)/4 {
		kind, at, n := kinds[r.dice.IntN(len(kinds))], r.between(0, span), r.dice.IntN(len(r.workers))
		deeds = append(deeds, kind(at, n)...)
	}
	if r.dice.IntN(4) == 0 {
		deeds = append(deeds, r.cutForLong(r.between(0, span), r.dice.IntN(len(r.workers)))...)
	}
	if r.dice.IntN(4) == 0 {
		n := r.dice.IntN(len(r.workers))
		deeds = append(deeds, deed{r.between(0, span), "replace " + r.workers[n].name, func() { r.replace(n) }})
	}
	return deeds
}

// forAWhile is something bad, and its end.
func forAWhile(at, long time.Duration, what string, begin, end func()) []deed {
	return []deed{{at, fmt.Sprintf("%s for %v", what, long), begin}, {at + long, "no more " + what, end}}
}

func (r *partitionRound) cut(at time.Duration, n int) []deed {
	return r.cutFor(at, n, r.between(20*time.Millisecond, 700*time.Millisecond))
}

func (r *partitionRound) cutForLong(at time.Duration, n int) []deed {
	return r.cutFor(at, n, r.between(partitionGrace*3/4, partitionGrace*3/2))
}

func (r *partitionRound) cutFor(at time.Duration, n int, long time.Duration) []deed {
	return forAWhile(at, long, "cut of "+r.workers[n].name,
		func() { r.workers[n].road.is(-1) }, func() { r.workers[n].road.is(0) })
}

// refuse has a proxy answer in the server's place.
func (r *partitionRound) refuse(at time.Duration, n int) []deed {
	status := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}[r.dice.IntN(3)]
	return forAWhile(at, r.between(20*time.Millisecond, 700*time.Millisecond), fmt.Sprint(status, " for ", r.workers[n].name),
		func() { r.workers[n].road.is(status) }, func() { r.workers[n].road.is(0) })
}

// askedByWorkers are parts of the addresses of what workers ask.
var askedByWorkers = []string{
	wire.Accept, wire.Renew, "/" + wire.Unit, "/" + wire.Report, "/" + wire.Output + "/", "/" + wire.End, "/" + wire.Gone,
	"/" + wire.API + "/handoff",
}

// some chooses requests at random, of some kinds.
func (r *partitionRound) some() func(*http.Request) bool {
	chosen := []string{askedByWorkers[r.dice.IntN(len(askedByWorkers))], askedByWorkers[r.dice.IntN(len(askedByWorkers))]}
	dice, mu := rand.New(rand.NewPCG(uint64(r.seed), r.dice.Uint64())), sync.Mutex{}
	return func(request *http.Request) bool {
		is := func(part string) bool { return strings.Contains(request.URL.Path, part) }
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(chosen, is) && dice.IntN(2) == 0
	}
}

// lose has answers be lost.
func (r *partitionRound) lose(at time.Duration, n int) []deed {
	some := r.some()
	return forAWhile(at, r.between(200*time.Millisecond, time.Second), "lost answers of "+r.workers[n].name,
		func() { r.workers[n].road.loses(some) }, func() { r.workers[n].road.loses(nil) })
}

// late has requests of all kinds be slow.
func (r *partitionRound) late(at time.Duration, n int) []deed {
	dice, mu := rand.New(rand.NewPCG(uint64(r.seed), r.dice.Uint64())), sync.Mutex{}
	late := func(*http.Request) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(dice.Int64N(int64(150 * time.Millisecond)))
	}
	return forAWhile(at, r.between(200*time.Millisecond, time.Second), "delay of "+r.workers[n].name,
		func() { r.workers[n].road.delays(late) }, func() { r.workers[n].road.delays(nil) })
}

// stray has requests come when who asked has given up long ago.
func (r *partitionRound) stray(at time.Duration, n int) []deed {
	some, long := r.some(), r.between(50*time.Millisecond, time.Second)
	stray := func(request *http.Request) time.Duration {
		if some(request) {
			return long
		}
		return 0
	}
	return forAWhile(at, r.between(200*time.Millisecond, time.Second), fmt.Sprintf("requests that come %v late of %s", long, r.workers[n].name),
		func() { r.workers[n].road.strays(stray) }, func() { r.workers[n].road.strays(nil) })
}

// restart ends a worker's process for a while.
func (r *partitionRound) restart(at time.Duration, n int) []deed {
	return forAWhile(at, r.between(5*time.Millisecond, 600*time.Millisecond), "process of "+r.workers[n].name+" away",
		func() { r.leave(n) }, func() { r.comeBack(n) })
}

func (r *partitionRound) leave(n int) {
	if !r.away[n] {
		r.workers[n].leave()
		r.away[n] = true
	}
}

func (r *partitionRound) comeBack(n int) {
	if r.away[n] {
		r.workers[n].begin()
		r.away[n] = false
	}
}

// endServer ends the server's process for a while, by SIGKILL or in order.
func (r *partitionRound) endServer(at time.Duration, _ int) []deed {
	by := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[r.dice.IntN(2)]
	return forAWhile(at, r.between(5*time.Millisecond, 600*time.Millisecond), fmt.Sprint("server away by ", by), func() {
		if r.serverAway {
			return
		}
		for _, w := range r.workers {
			w.road.rests() // one that ends in order waits for connections of which it knows nothing
		}
		r.signal(by)
		<-r.ended
		r.serverAway = true
	}, r.startServer)
}

func (r *partitionRound) startServer() {
	if r.serverAway {
		r.start()
		r.serverAway = false
	}
}

func (r *partitionRound) drain(at time.Duration, n int) []deed {
	draining := func(do func(context.Context, string) (api.Worker, error)) func() {
		return func() {
			if r.serverAway {
				return
			}
			if _, err := do(context.Background(), r.workers[n].name); err != nil {
				r.failf("%s isn't drained, or is it still: %v", r.workers[n].name, err)
			}
		}
	}
	all := r.client.Workers
	return forAWhile(at, r.between(50*time.Millisecond, time.Second), "drain of "+r.workers[n].name, draining(all.Drain), draining(all.Undrain))
}

func (r *partitionRound) cancelOne(at time.Duration, _ int) []deed {
	own := r.runs[r.dice.IntN(len(r.runs))]
	return []deed{{at, "cancel " + own.todo.Mark, func() {
		r.mu.Lock()
		id := own.id
		own.cancel = own.cancel || id != ""
		r.mu.Unlock()
		if id != "" && !r.serverAway {
			_, _ = r.client.Runs.Cancel(context.Background(), id, "of the test") // it may have ended
		}
	}}}
}

// replace removes a worker, and has another one come.
func (r *partitionRound) replace(n int) {
	r.startServer()
	old := r.workers[n]
	old.road.heals()
	r.comeBack(n)
	if err := r.client.Workers.Remove(context.Background(), old.name); err != nil {
		r.failf("%s isn't removed: %v", old.name, err)
		return
	}
	r.joined++
	r.workers[n] = r.worker(fmt.Sprint("other-", r.joined), old.slots)
	if !testkit.Within(partitionPatience, func() bool { return pause.Over(old.ended) }) || !testkit.Within(partitionPatience, old.isEmpty) {
		r.failf("%s was removed, and goes on, or has left something:\n%s", old.name, old.log())
	}
}

// heal ends all that disturbs.
func (r *partitionRound) heal() {
	r.startServer()
	for n, w := range r.workers {
		w.road.heals()
		r.comeBack(n)
		if _, err := r.client.Workers.Undrain(context.Background(), w.name); err != nil {
			r.failf("%s isn't there: %v", w.name, err)
		}
	}
}

// judge waits for the ends of all runs and of what they called, and holds them against what was promised.
func (r *partitionRound) judge() {
	for _, own := range r.runs {
		if own.id == "" {
			continue // it failed already
		}
		tree := r.treeOf(own.id)
		if len(tree) > 0 {
			r.judgeRun(own, tree)
			r.judgeCounts(own, tree)
		}
	}
	for _, w := range r.workers {
		if !testkit.Within(partitionPatience, w.isEmpty) {
			r.failf("something is left at %s:\n%s", w.name, w.log())
		}
	}
	for run, err := range r.client.Runs.List(context.Background(), api.Filter{Active: true}) {
		if err != nil || run.Outcome == "" {
			r.failf("run %s goes on, of which nobody knows: %v", run.ID, err)
		}
	}
	if r.t.Failed() {
		r.t.Fatalf("seed %d:\n%s\nthe server:\n%s", r.seed, strings.Join(r.story, "\n"), r.log())
	}
}

// treeOf returns a run and all that it called, at their ends.
func (r *partitionRound) treeOf(id string) (tree []api.Record) {
	root, ended := r.endOf(id)
	if !ended {
		return nil
	}
	tree = append(tree, root)
	for call, err := range r.client.Runs.List(context.Background(), api.Filter{Parent: id}) {
		if err != nil {
			r.failf("the calls of %s: %v", id, err)
			return tree
		}
		tree = append(tree, r.treeOf(call.ID)...)
	}
	return tree
}

func (r *partitionRound) endOf(id string) (record api.Record, ended bool) {
	ended = testkit.Within(partitionPatience, func() (is bool) {
		var err error
		record, err = r.client.Runs.Get(context.Background(), id)
		return err == nil && over(record)
	})
	if !ended {
		r.failf("run %s doesn't end: %s, waits for %+v, at %s, transitions %+v", id, record.State, record.Waiting, record.Worker,
			record.Transitions)
	}
	return record, ended
}

// judgeRun holds the end of a run against what it should be.
func (r *partitionRound) judgeRun(own *partitionRun, tree []api.Record) {
	root := tree[0]
	r.all++
	r.again += min(1, len(root.Attempts))
	switch {
	case root.Outcome == api.Success:
		r.judgeSuccess(own, root)
	case own.cancel && root.Outcome == api.WasCancelled:
		r.cancelled++
	case own.unit == "effective" && isLost(root.Error) && root.Error.Category == api.CategoryPermanent:
		r.lost++
	case slices.ContainsFunc(tree, wasLostOften):
		r.lost++
	default:
		r.failf("%s %s is %s: %s, after %s", own.unit, own.todo.Mark, root.Outcome, shown(root.Error), attemptsOf(root))
		for _, call := range tree[1:] {
			r.failf("it called %s, which is %s: %s, after %s", call.Input, call.Outcome, shown(call.Error), attemptsOf(call))
		}
	}
}

func isLost(e *api.RunError) bool { return e != nil && e.Kind == api.KindWorkerLost }

// wasLostOften reports whether so many attempts of a run were lost with their workers that there was no other one.
func wasLostOften(r api.Record) bool {
	lost := 0
	for _, attempt := range r.Attempts {
		if isLost(attempt.Error) {
			lost++
		}
	}
	return lost >= 3 && isLost(r.Error)
}

func attemptsOf(r api.Record) string {
	all := fmt.Sprintf("%d attempts", len(r.Attempts))
	for _, attempt := range r.Attempts {
		all += "; " + shown(attempt.Error)
	}
	return all
}

func shown(e *api.RunError) string { return string(servicetest.JSON(e)) }

// judgeSuccess holds what a run gave against what it was to give.
func (r *partitionRound) judgeSuccess(own *partitionRun, root api.Record) {
	var output jobOrders
	if json.Unmarshal(root.Output, &output) != nil || output.Mark != own.todo.Mark {
		r.failf("%s has the output %s", own.todo.Mark, root.Output)
	}
	line := 0
	for entry, err := range r.client.Runs.Log(context.Background(), root.ID, api.LogFilter{}) {
		if err != nil {
			r.failf("the log of %s: %v", own.todo.Mark, err)
			break
		}
		if entry.Attempt <= len(root.Attempts) {
			continue
		}
		if line++; entry.Text != fmt.Sprint("line ", line) {
			r.failf("line %d of %s is %q, of attempt %d", line, own.todo.Mark, entry.Text, entry.Attempt)
			break
		}
	}
	if line != own.todo.Lines {
		r.failf("%s has %d lines of %d, after %s", own.todo.Mark, line, own.todo.Lines, attemptsOf(root))
	}
	if want := 0; own.todo.Bytes > 0 {
		want = own.todo.Bytes
		if len(root.Files) != 1 || !bytes.Equal(r.fileOf(root), fileBytes(want)) {
			r.failf("%s has files %+v, or others than %d bytes", own.todo.Mark, root.Files, want)
		}
	}
}

// judgeCounts holds how often programs were begun, and calls made, against how often they may have been.
func (r *partitionRound) judgeCounts(own *partitionRun, tree []api.Record) {
	if n := r.begun(own.todo.Mark); own.unit == "effective" && (n > 1 || len(tree[0].Attempts) > 0) {
		r.failf("%s may have effects, and was begun %d times, after %s", own.todo.Mark, n, attemptsOf(tree[0]))
	}
	attempts := map[string]int{} // of runs
	for _, run := range tree {
		attempts[run.ID] = 1 + len(run.Attempts)
	}
	begun, called := map[string]int{}, map[string]int{} // how often a mark may have been begun, and was called by whom
	for _, run := range tree {
		mark := markOf(run)
		begun[mark] += attempts[run.ID]
		if called[run.Parent+mark]++; run.ID != tree[0].ID && called[run.Parent+mark] > attempts[run.Parent] {
			r.failf("%s was called %d times by %s, in %d attempts", mark, called[run.Parent+mark], run.Parent, attempts[run.Parent])
		}
	}
	for mark, most := range begun {
		if n := r.begun(mark); n > most {
			r.failf("%s was begun %d times in %d attempts", mark, n, most)
		}
	}
}

func markOf(r api.Record) string {
	var todo jobOrders
	_ = json.Unmarshal(r.Input, &todo) // that of none is begun never
	return todo.Mark
}
