package testcmd

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/orchestrator"
)

// suite is the cases of a unit, each to be run so often as the flags say.
type suite struct {
	env     *cli.Env
	variant variant
	req     orchestrator.Request
	cases   []capsule.Case
	graders map[string]grader // by their names
	flags   *testFlags

	mu    sync.Mutex
	done  [][]*outcome // of each case, by repetition; nil: it hasn't been run
	ended []int        // how many runs of each case have ended
	shown int          // cases
	total int          // runs that have ended
	spent api.Cost
	stops bool      // models have cost enough
	said  time.Time // when a person was told how far it is
}

// noteTime is between two notes of how far it is.
const noteTime = 5 * time.Second

// run runs all cases, the repetitions of one after the other's, so many at once as the flags say. The error is for
// AOD's own failures: the first one cancels what runs.
func (s *suite) run(ctx context.Context, l *cli.Local) error {
	s.said = time.Now()
	s.done, s.ended = make([][]*outcome, len(s.cases)), make([]int, len(s.cases))
	runs, ctx := errgroup.WithContext(ctx)
	runs.SetLimit(s.flags.jobs)
	for i, test := range s.cases {
		s.done[i] = make([]*outcome, s.flags.repeat)
		for n := range s.flags.repeat {
			runs.Go(func() error { return s.runOnce(ctx, l, i, n, test) })
		}
	}
	return runs.Wait()
}

// runOnce runs a case for the n-th time, from 0, unless models have cost enough.
func (s *suite) runOnce(ctx context.Context, l *cli.Local, i, n int, test capsule.Case) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.costsEnough() {
		return nil
	}
	key := runKey{s.variant.number, test.Name, n}
	if o := s.variant.kept.get(key); o != nil {
		s.note(i, n, o)
		return nil
	}
	repetition := 0 // it isn't repeated
	if s.flags.repeat > 1 {
		repetition = n + 1
	}
	ctx, answers, err := s.flags.sources.Models.OfCase(ctx, test, repetition)
	if err != nil {
		return err
	}
	o, err := s.runCase(ctx, l, test)
	if err != nil {
		return err
	}
	o.answers = answers
	s.note(i, n, &o)
	return s.variant.kept.put(key, o)
}

func (s *suite) costsEnough() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flags.maxCost > 0 && s.spent >= s.flags.maxCost {
		s.stops = true
	}
	return s.stops
}

// note keeps what came of a run, and shows the cases that are over in their order.
func (s *suite) note(i, n int, o *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[i][n] = o
	s.ended[i]++
	s.spent += o.spent.Cost + o.grading.Cost
	s.total++
	if all := len(s.cases) * s.flags.repeat; s.flags.repeat > 1 && time.Since(s.said) > noteTime && s.total < all {
		s.said = time.Now()
		s.env.Note("%d of %d runs are over", s.total, all)
	}
	for ; s.flags.asLines() && s.shown < len(s.cases) && s.ended[s.shown] == s.flags.repeat; s.shown++ {
		s.resultOf(s.shown).show(s.env)
	}
}

// results is what came of all cases.
func (s *suite) results() *testResults {
	r := &testResults{Unit: s.req.Unit.Name, Variant: s.variant.label, Cases: []caseResult{}, Stopped: s.stops}
	for i := range s.cases {
		c := s.resultOf(i)
		if r.Cases = append(r.Cases, c); c.Passed {
			r.Passed++
		} else {
			r.Failed++
		}
		if s.flags.asLines() && i >= s.shown {
			c.show(s.env)
		}
	}
	return r
}
