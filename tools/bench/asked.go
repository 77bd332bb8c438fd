package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// ownTime is the gateway's handler in this process, without a socket before it or a disk.
func (b *bench) ownTime(ctx context.Context) (part, error) {
	d, err := b.double(ctx)
	if err != nil {
		return part{}, err
	}
	gw, err := gateway.New(catalog.Catalog{
		Providers: map[string]catalog.Provider{"p": {
			Kind: catalog.Compatible, BaseURL: d.url, AnyField: true,
			Dialects: catalog.Dialects(),
		}},
		Models: map[string]catalog.Model{"plain": {Use: []catalog.Use{{Provider: "p", Model: "plain"}}, MaxOutput: 64}},
	}, gateway.Options{})
	if err != nil {
		return part{}, err
	}
	defer gw.Close()
	handler := gw.Handler(gateway.Session{Run: "r", Root: "r", Models: []string{"plain"}})
	const body = `{"model":"plain","stream":false,"messages":[{"role":"user","content":"What is the colour of the sky?"}]}`
	direct := modelClient{&http.Client{Transport: &http.Transport{}}, d.url}
	own := "the gateway's handler"
	g := group{
		ways: []*way{
			{
				name: atDouble,
				do: func(ctx context.Context) error {
					return direct.whole(ctx, "plain",
						"What is the colour of the sky?")
				},
			},
			{name: own, do: func(ctx context.Context) error {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions",
					strings.NewReader(body)))
				if w.Code != http.StatusOK {
					return errors.New(w.Body.String())
				}
				return nil
			}},
		},
		beside: []string{atDouble}, times: 100,
	}
	made, err := g.measure(ctx, b.pairs)
	if err == nil {
		made.goals = []goal{atMost("added by its handler, p50 in ms", number(made, own)-number(made, atDouble), 0.6)}
	}
	return made, err
}

// number is the median of a row.
func number(p part, name string) float64 {
	for _, row := range p.table.rows {
		if row[0] == name {
			n, _ := strconv.ParseFloat(row[1], 64) // it was written from one
			return n
		}
	}
	return 0
}

const streams = 50

// streamChunks tells how much later chunks come through the gateway.
func (b *bench) streamChunks(ctx context.Context) (part, error) {
	a, err := b.modelRig(ctx)
	if err != nil {
		return part{}, err
	}
	each := []series{{name: atDouble}, {name: atSocket}}
	for range max(b.pairs/10, 1) {
		for i, of := range []func(int) modelClient{a.itself, a.socket} {
			late, err := delays(ctx, of)
			if err != nil {
				return part{}, err
			}
			each[i].times = append(each[i].times, late...)
		}
	}
	made := group{beside: []string{atDouble}}.part(each, len(each[0].times))
	later := func(q float64) float64 { return (each[1].quantile(q) - each[0].quantile(q)).Seconds() * 1000 }
	made.goals = []goal{
		atMost("a chunk comes later, p50 in ms", later(0.5), 0.3),
		atMost("a chunk comes later, p99 in ms", later(0.99), 5),
	}
	made.notes = append(made.notes, "From a chunk's writing to its reading, in one process.")
	return made, nil
}

// delays reads many streams at once.
func delays(ctx context.Context, of func(int) modelClient) (late []time.Duration, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range streams {
		all.Go(func() {
			own, failed := of(n).delays(ctx)
			mu.Lock()
			defer mu.Unlock()
			late, err = append(late, own...), errors.Join(err, failed)
		})
	}
	all.Wait()
	if err == nil && len(late) != streams*streamTicks {
		err = fmt.Errorf("%d chunks came", len(late))
	}
	return late, err
}

func (c modelClient) delays(ctx context.Context) (late []time.Duration, err error) {
	response, err := c.ask(ctx, "ticks", "Go on.")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		now := time.Now()
		if parts := strings.Split(lines.Text(), "@"); len(parts) == 3 {
			sent, _ := strconv.ParseInt(parts[1], 10, 64) // the double wrote it
			late = append(late, now.Sub(time.Unix(0, sent)))
		}
	}
	return late, lines.Err()
}

// modelCalls counts requests a second.
func (b *bench) modelCalls(ctx context.Context) (part, error) {
	const atOnce, each = 32, 50
	a, err := b.modelRig(ctx)
	if err != nil {
		return part{}, err
	}
	made := part{table: table{head: []string{"", "requests a second"}}}
	best := map[string]float64{}
	for turn := range max(b.pairs/6, 2) {
		for name, of := range map[string]func(int) modelClient{atDouble: a.itself, atSocket: a.socket} {
			began := time.Now()
			_, _, failures := crowd(ctx, atOnce*each, atOnce,
				func(ctx context.Context, worker int) error { return of(worker).whole(ctx, "plain", "What?") })
			if len(failures) > 0 {
				return part{}, failures[0]
			}
			if rate := atOnce * each / time.Since(began).Seconds(); turn > 0 {
				best[name] = max(best[name], rate)
			}
		}
	}
	for _, name := range []string{atDouble, atSocket} {
		made.table.rows = append(made.table.rows, []string{name, digits(best[name])})
	}
	made.goals = []goal{atMost("milliseconds a request at 500 a second", 1000/best[atSocket], 2)}
	made.notes = []string{fmt.Sprintf("The best of %d turns with %d requests each.", max(b.pairs/6, 2)-1, atOnce*each)}
	return made, nil
}

// modelMemory tells what requests take while they are under way.
func (b *bench) modelMemory(ctx context.Context) (part, error) {
	a, err := b.modelRig(ctx)
	if err != nil {
		return part{}, err
	}
	made := part{table: table{head: []string{"MiB", "resident"}}}
	var sizes []int64
	look := func(name string) error {
		bytes, err := residentOf(a.server.cmd.Process.Pid)
		sizes = append(sizes, bytes)
		made.table.rows = append(made.table.rows, []string{name, mebibytes(bytes)})
		return err
	}
	for range 20 { // what the first requests make once
		if err := a.socket(0).whole(ctx, "plain", "What?"); err != nil {
			return part{}, err
		}
	}
	steps := []struct {
		name, text string
		n          int
	}{{"200 streams are open", "What?", 200}, {"20 requests of 10 MiB are under way", strings.Repeat("x", 10<<20), 20}}
	if err := look("before"); err != nil {
		return part{}, err
	}
	for _, step := range steps {
		if err := a.hold(ctx, step.n, step.text, func() error { return look(step.name) }); err != nil {
			return part{}, err
		}
		if err := look("when they are over"); err != nil {
			return part{}, err
		}
	}
	made.goals = []goal{
		atMost("200 open streams take, MiB", float64(sizes[1]-sizes[0])/(1<<20), 40),
		atMost("20 requests of 10 MiB take, MiB", float64(sizes[3]-sizes[0])/(1<<20), 400),
	}
	return made, nil
}

// hold has requests under way while it looks.
func (a modelRig) hold(ctx context.Context, n int, text string, look func() error) error {
	var all sync.WaitGroup
	failures := make(chan error, n)
	for i := range n {
		all.Go(func() { failures <- a.socket(i).whole(ctx, "held", text) })
	}
	err := a.opened(ctx, n)
	if err == nil {
		err = look()
	}
	a.letGo()
	all.Wait()
	for range n {
		err = errors.Join(err, <-failures)
	}
	return errors.Join(err, a.opened(ctx, 0))
}

// firstRequest is the time from the submission of a warm agent's run to its request.
func (b *bench) firstRequest(ctx context.Context) (part, error) {
	d, err := b.double(ctx)
	if err != nil {
		return part{}, err
	}
	if _, err := b.modelJob(ctx); err != nil {
		return part{}, err
	}
	const one = `{"unit": "bench-model", "input": {"n": 1}}`
	warm, err := b.stockOf(ctx, serving{more: d.settings()}, 2, one, modelUnit)
	if err != nil {
		return part{}, err
	}
	var began time.Time
	whole := warm.submission("a run that asks once, warm", one)
	do := whole.do
	whole.do = func(ctx context.Context) error {
		began = time.Now()
		return do(ctx)
	}
	first := "from its submission until the model is asked"
	whole.inside = &inside{name: first, took: func() time.Duration { return d.last().Sub(began) }}
	return group{
		ways: []*way{whole}, aims: []aim{{of: first, ms: 30}},
		notes: []func() string{warm.String},
	}.measure(ctx, b.pairs)
}

// lentSlots has 20 runs wait for a slow model, with 2 slots and with 20.
func (b *bench) lentSlots(ctx context.Context) (part, error) {
	const runs = 20
	d, err := b.double(ctx)
	if err != nil {
		return part{}, err
	}
	if _, err := b.modelJob(ctx); err != nil {
		return part{}, err
	}
	const slow = `{"unit": "bench-model", "input": {"n": 3, "model": "slow"}}`
	var ways []*way
	for _, slots := range []int{20, 2} {
		server, err := b.serve(ctx, serving{more: fmt.Sprintf("concurrency: %d\n", slots) + d.settings()})
		if err != nil {
			return part{}, err
		}
		ways = append(ways, &way{name: fmt.Sprintf("%d slots", slots), do: func(ctx context.Context) error {
			_, _, failures := crowd(ctx, runs, runs, func(ctx context.Context, _ int) error {
				record, err := server.submit(ctx, slow, waiting, http.StatusOK)
				if err == nil && record.Outcome != api.Success {
					err = fmt.Errorf("run %s ended with the outcome %q", record.ID, record.Outcome)
				}
				return err
			})
			return errors.Join(failures...)
		}})
	}
	note := func() string {
		return fmt.Sprintf("%d cold runs at once; each asks three times, and an answer takes %s.", runs, slowAnswer)
	}
	g := group{
		ways: ways, beside: []string{"20 slots"}, each: 10,
		aims: []aim{{of: "2 slots", beside: "20 slots", ratio: 1.2}}, notes: []func() string{note},
	}
	return g.measure(ctx, b.pairs)
}

// untilAllWait is how long it takes until what a limited model gives at once is gone. Until
// then whoever comes first passes, and there is nothing to share.
const untilAllWait = 7 * time.Second

// fairShares counts what each of five runs gets of a model with a limit in a minute, though
// they ask with one to five requests at once.
func (b *bench) fairShares(ctx context.Context) (part, error) {
	a, err := b.modelRig(ctx)
	if err != nil {
		return part{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var all sync.WaitGroup
	got := make([]atomic.Int64, heldRuns)
	began := time.Now()
	for run := range heldRuns {
		for range run + 1 {
			all.Go(func() {
				for a.socket(run).whole(ctx, "limited", "What?") == nil {
					if time.Since(began) > untilAllWait {
						got[run].Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	sum, off := int64(0), 0.0
	made := part{table: table{head: []string{"requests at once", "answers"}}}
	for run := range heldRuns {
		sum += got[run].Load()
		made.table.rows = append(made.table.rows, []string{fmt.Sprint(run + 1), fmt.Sprint(got[run].Load())})
	}
	for run := range heldRuns {
		off = max(off, math.Abs(float64(got[run].Load())*heldRuns/float64(sum)-1))
	}
	made.goals = []goal{atMost("the share that is furthest from a fifth, as a part of it", off, 0.2)}
	return made, nil
}
