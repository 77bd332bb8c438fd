package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// elsewhere is the setting of a server that has no containers itself.
const elsewhere = "local_sandboxes: false\n"

const (
	byWorkers = "by two workers, warm"
	farCall   = "the call alone, between two workers: measured in the caller"
)

// farHandOver is a capsule at one worker that calls one at another.
func (b *bench) farHandOver(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	_, err := b.newJob(ctx, program{name: "asking", input: `{"n": 3}`, calls: smallUnit, logic: askingLogic})
	if err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, callRun, callUnit, smallUnit)
	if err != nil {
		return part{}, err
	}
	far, err := b.serve(ctx, serving{more: elsewhere, needs: map[string]string{callUnit: "a", smallUnit: "b"}})
	if err != nil {
		return part{}, err
	}
	for _, name := range []string{"a", "b"} {
		if _, err := b.work(ctx, far, name, "--label", name); err != nil {
			return part{}, err
		}
	}
	near, there := &trail{server: warm.server, work: apiWarm}, &trail{server: far, work: byWorkers}
	ways := []*way{calling(near, warmCall), calling(there, farCall)}
	ways[0].settle = func(ctx context.Context) error { return errors.Join(near.follow(ctx), warm.full(ctx)) }
	ways[1].settle = func(ctx context.Context) error {
		err := there.follow(ctx)
		last := len(there.callees) - 1
		if err == nil && there.callers[last].Worker+there.callees[last].Worker != "ab" {
			err = fmt.Errorf("the callee was at %q", there.callees[last].Worker)
		}
		time.Sleep(refilled)
		return err
	}
	for range 5 {
		if err := errors.Join(ways[1].do(ctx), ways[1].settle(ctx)); err != nil {
			return part{}, err
		}
	}
	return group{
		ways: ways, beside: []string{apiWarm, warmCall},
		aims: []aim{{of: farCall, ms: 25}, {of: farCall, beside: warmCall, ratio: 2.1}},
	}.measure(ctx, b.pairs)
}

// farAsk is how much longer a request for a model takes at a worker, whose server asks the model.
func (b *bench) farAsk(ctx context.Context) (part, error) {
	d, err := b.double(ctx)
	if err != nil {
		return part{}, err
	}
	if _, err := b.modelJob(ctx); err != nil {
		return part{}, err
	}
	near, err := b.serve(ctx, serving{more: d.settings()})
	if err != nil {
		return part{}, err
	}
	far, err := b.serve(ctx, serving{more: elsewhere + d.settings()})
	if err != nil {
		return part{}, err
	}
	if _, err := b.work(ctx, far, "one"); err != nil {
		return part{}, err
	}
	const atServer, atWorker = "from a sandbox at the server", "from a sandbox at a worker"
	each := []series{{name: atServer}, {name: atWorker}}
	for turn := range max(b.pairs/6, 2) + 1 {
		for i, s := range []*server{near, far} {
			output, err := modelRig{server: s}.fromSandbox(ctx)
			var told struct{ Times []float64 }
			if err == nil {
				err = json.Unmarshal(output, &told)
			}
			if err != nil {
				return part{}, err
			}
			for _, ms := range told.Times[1:] { // the first one connects
				each[i].add(turn, inMilliseconds(ms))
			}
		}
	}
	made := group{beside: []string{atServer}}.part(each, len(each[0].times))
	made.goals = []goal{atMost("added by the relay, p50 in ms", number(made, atWorker)-number(made, atServer), 1.5)}
	return made, nil
}

const (
	nap      = 2 * time.Second
	napping  = "bench-napping"
	napsEach = 12
)

// farSlots is how much sooner many runs that sleep are done by three workers than by one.
func (b *bench) farSlots(ctx context.Context) (part, error) {
	_, err := b.newJob(ctx, program{name: "napping", input: `{"n": 3}`, logic: fmt.Sprintf(`import time


def execute(payload: dict) -> dict:
    time.sleep(%v)
    return {"n": payload["n"]}
`, nap.Seconds())})
	if err != nil {
		return part{}, err
	}
	var ways []*way
	for _, n := range []int{1, 3} {
		s, err := b.serve(ctx, serving{more: elsewhere})
		if err != nil {
			return part{}, err
		}
		for i := range n {
			if _, err := b.work(ctx, s, fmt.Sprint("w", i), "--concurrency", "2"); err != nil {
				return part{}, err
			}
		}
		ways = append(ways, &way{name: fmt.Sprintf("%d workers", n), do: func(ctx context.Context) error {
			_, _, failures := crowd(ctx, napsEach, napsEach, func(ctx context.Context, _ int) error {
				_, err := s.submit(ctx, `{"unit": "`+napping+`", "input": {"n": 1}}`, waiting, http.StatusOK)
				return err
			})
			return errors.Join(failures...)
		}})
	}
	ways[0].name = "one worker"
	made, err := group{
		ways: ways, beside: []string{"one worker"}, each: 6,
		aims: []aim{{of: "3 workers", beside: "one worker", ratio: 0.37}}, // 2.7 times as much
	}.measure(ctx, b.pairs)
	made.notes = append(made.notes,
		fmt.Sprintf("%d runs at once, each of which sleeps for %v, by workers of two slots.", napsEach, nap))
	return made, err
}

const idleWorkers = 100

// farMemory is what workers take that have nothing to do.
func (b *bench) farMemory(ctx context.Context) (part, error) {
	s, err := b.serve(ctx, serving{more: elsewhere})
	if err != nil {
		return part{}, err
	}
	one, err := b.work(ctx, s, "one")
	if err != nil {
		return part{}, err
	}
	time.Sleep(2 * wire.Renewal)
	made := part{table: table{head: []string{"MiB", "resident"}}}
	var sizes []int64
	look := func(name string, pid int) error {
		bytes, err := residentOf(pid)
		sizes = append(sizes, bytes)
		made.table.rows = append(made.table.rows, []string{name, mebibytes(bytes)})
		return err
	}
	err = errors.Join(look("`aod work`, idle", one.Process.Pid), look("`aod serve` with one worker", s.cmd.Process.Pid))
	for i := 0; i < idleWorkers && err == nil; i++ {
		err = s.idle(ctx, fmt.Sprint("idle-", i))
	}
	if err != nil {
		return part{}, err
	}
	time.Sleep(2 * wire.Renewal)
	err = look(fmt.Sprintf("the same with %d more", idleWorkers), s.cmd.Process.Pid)
	made.goals = []goal{
		atMost("an idle worker takes, MiB", float64(sizes[0])/(1<<20), 35),
		atMost(fmt.Sprintf("%d idle workers take at the server, MiB", idleWorkers),
			float64(sizes[2]-sizes[1])/(1<<20), 60),
	}
	return made, err
}

// idle has a worker join that does nothing but ask for orders and renew what it holds, until ctx ends.
func (s *server) idle(ctx context.Context, name string) error {
	answer, err := s.ask(ctx, http.MethodPost, "/v1/workers", fmt.Sprintf(`{"name": %q}`, name), http.StatusCreated)
	var join api.WorkerJoin
	if err == nil {
		err = json.Unmarshal(answer, &join)
	}
	if err != nil {
		return err
	}
	guest, own := *s, *s
	guest.token, own.token = join.Token, access.NewToken()
	_, err = guest.ask(ctx, http.MethodPost, wire.Enrol, fmt.Sprintf(`{"credential": %q}`, own.token), http.StatusOK)
	if err != nil {
		return err
	}
	hello, err := json.Marshal(wire.Hello{Protocol: wire.Protocol, Number: 1, Home: join.Home, Slots: 1})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+wire.Orders, strings.NewReader(string(hello)))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+own.token)
	response, err := s.client.Do(r) //nolint:bodyclose // it is read to its end beside, and closed then
	if err != nil {
		return err
	}
	go func() {
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body) // until the server ends
	}()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(wire.Renewal)
			_, _ = own.ask(ctx, http.MethodPost, wire.Renew, "{}", http.StatusOK) // the last one may fail
		}
	}()
	return nil
}
