package flow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slow is a unit that takes as long as its input says.
func slow(ctx context.Context, c Call) (any, error) {
	took, _ := time.ParseDuration(c.Input["takes"].(string))
	select {
	case <-time.After(took):
		return "slow", nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestTimes walks flows in which time passes, each in its own time.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name, flow, failure, path string
		takes                     time.Duration
	}{
		{
			"a try has its time", `{start: a, nodes: {a: {run: u, with: {takes: 10s}, timeout: 3s, retry: 2}}}`,
			KindTimeout, "a:failed a~2:failed", 6 * time.Second,
		},
		{
			"the pauses grow up to their limit", `{start: a, nodes: {a: {run: u, with: {takes: 10s}, timeout: 1s, retry: {tries: 5, wait: 1s, factor: 3, max_wait: 5s}}}}`,
			KindTimeout, "a:failed a~2:failed a~3:failed a~4:failed a~5:failed", 5*time.Second + (1+3+5+5)*time.Second,
		},
		{
			"a pause that would outlast what is left fails at once", `{start: a, nodes: {a: {timeout: 30s, flow: {nodes: {i: {run: u, with: {takes: 10s}, timeout: 1s, retry: {tries: 2, wait: 1h}}}}}}}`,
			KindTimeout, "a:failed a/i:failed", time.Second,
		},
		{
			"a map has its time", `{start: a, nodes: {a: {map: "${{ [1, 2, 3] }}", parallel: 1, timeout: 5s, run: u, with: {takes: 2s}}}}`,
			KindTimeout, "a:failed a[0]:done a[1]:done", 5 * time.Second,
		},
		{
			"branches have", `{start: a, nodes: {a: {timeout: 5s, branches: {x: {run: u, with: {takes: 2s}}, y: {run: u, with: {takes: 9s}}}}}}`,
			KindTimeout, "a:failed a/x:done", 5 * time.Second,
		},
		{
			"what is borne doesn't cover the end of the time", `{start: a, nodes: {a: {map: "${{ [1, 2] }}", tolerate: 100%, timeout: 5s, run: u, with: {takes: 9s}}}}`,
			KindTimeout, "a:failed", 5 * time.Second,
		},
		{
			"a wait ends by itself", `{start: a, nodes: {a: {wait: "${{ input.wait }}", next: b}, b: {wait: "2000-01-01T00:00:59Z", next: c}, c: {wait: "1999-01-01T00:00:00Z"}}}`,
			"", "a:done b:done c:done", 59 * time.Second,
		},
		{"a wait for nothing", `{start: a, nodes: {a: {wait: "${{ 'soon' }}"}}}`, KindExpression, "a:failed", 0},
		{
			"nobody answers", `{start: a, nodes: {a: {ask: "Really?", timeout: 2h, next: {approve: end, timeout: end}}}}`,
			"", "a:failed", 2 * time.Hour,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &fakeHost{unit: slow, answer: func(ctx context.Context, _ Question) (Answer, error) {
					<-ctx.Done()
					return Answer{}, context.Cause(ctx)
				}}
				began := time.Now()
				ended := walked(t, c.flow, map[string]any{"wait": "20s"}, h)
				failure := ""
				if ended.Failure != nil {
					failure = ended.Failure.Kind
				}
				if took := time.Since(began); failure != c.failure || took != c.takes || went(h.steps) != c.path && !unordered(c.path, h.steps) {
					t.Errorf("it took %s, failed with %q (%v), and went\n%s", took, failure, ended.Failure, went(h.steps))
				}
			})
		})
	}
}

func unordered(want string, steps []Step) bool {
	got := sorted(went(steps))
	for step := range sorted(want) {
		if !got[step] {
			return false
		}
	}
	return len(got) == len(sorted(want))
}

// TestTimesGoOnAcrossRestarts kills a walk in a pause, and goes on later.
func TestTimesGoOnAcrossRestarts(t *testing.T) {
	for name, text := range map[string]string{
		"a retry":  `{start: a, nodes: {a: {run: u, with: {takes: 1s}, timeout: 10s, retry: {tries: 2, wait: 1m}}}}`,
		"a wait":   `{start: a, nodes: {a: {wait: 1m}}}`,
		"an ask":   `{start: a, nodes: {a: {ask: "Who?", timeout: 1m, next: {timeout: end, approve: end}}}}`,
		"a branch": `{start: a, nodes: {a: {timeout: 1m, branches: {x: {wait: 1h}}, next: {timeout: end, default: end}}}}`,
		"an item":  `{start: a, nodes: {a: {map: "${{ [1] }}", run: u, with: {takes: 1s}, retry: {tries: 2, wait: 1m}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := true
				h := &fakeHost{
					unit: func(context.Context, Call) (any, error) {
						if broken {
							broken = false
							return nil, failingUnit("broke")
						}
						return nil, nil
					},
					answer: func(ctx context.Context, _ Question) (Answer, error) {
						<-ctx.Done()
						return Answer{}, context.Cause(ctx)
					},
				}
				f, began := flowOf(t, text), time.Now()
				killed, kill := context.WithCancel(t.Context())
				time.AfterFunc(20*time.Second, kill)
				if _, err := f.Walk(killed, nil, nil, h); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				open := slices.IndexFunc(h.steps, func(s Step) bool { return s.State == Open && s.Until.Equal(began.Add(time.Minute)) })
				if open < 0 {
					t.Errorf("nothing says until when it waits: %s", went(h.steps))
				}
				time.Sleep(10 * time.Second)
				ended, err := f.Walk(t.Context(), nil, slices.Clone(h.steps), h)
				if took := time.Since(began); err != nil || ended.Failure != nil || took != time.Minute {
					t.Errorf("it took %s: %v %v", took, err, ended.Failure)
				}
				for _, s := range h.steps {
					if s.State == Open && s.Address != "a/x" { // whose time was up with that of a
						t.Errorf("%s is open", s.Address)
					}
				}
			})
		})
	}
}

func TestASuccessThatCameWithATimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{
			unit: func(ctx context.Context, _ Call) (any, error) {
				<-ctx.Done()
				return "late", nil
			},
			answer: func(ctx context.Context, _ Question) (Answer, error) {
				<-ctx.Done()
				return Answer{Action: "approve", At: noon}, nil
			},
		}
		ended := walked(t, `{start: a, nodes: {a: {run: u, timeout: 1s, set: {x: "${{ out }}"}, next: b}, b: {ask: "Who?", timeout: 1s, next: {approve: c}}, c: {timeout: 1s, branches: {x: {run: u}}}}, output: {x: "${{ state.x }}"}}`, nil, h)
		if ended.Failure != nil || ended.Output["x"] != "late" {
			t.Errorf("%v", ended)
		}
	})
}

func TestAPersonAnswers(t *testing.T) {
	var asked []Question
	h := &fakeHost{answer: func(_ context.Context, q Question) (Answer, error) {
		asked = append(asked, q)
		return Answer{Action: "reject", Form: map[string]any{"why": "dull"}, By: "Ada", Note: "sorry", At: noon}, nil
	}}
	ended := walked(t, `{start: a, nodes: {a: {ask: "Publish ${{ input.n }}?", show: {n: "${{ input.n }}"}, form: {type: object}, set: {a: "${{ out }}"}, next: {approve: end, reject: b}}, b: {}}, output: {a: "${{ state.a }}"}}`,
		map[string]any{"n": int64(1)}, h)
	text, _ := Encode(ended.Output["a"])
	if want := `{"at":"2027-01-31T12:00:00Z","by":"Ada","note":"sorry","why":"dull"}`; string(text) != want || went(h.steps) != "a:done b:done" {
		t.Errorf("%s, %s", text, went(h.steps))
	}
	q := asked[0]
	if q.Text != "Publish 1?" || q.Show["n"] != int64(1) || string(q.Form) != `{"type":"object"}` || len(q.Answers) != 2 || !q.Until.IsZero() {
		t.Errorf("%+v", q)
	}
}

func TestAQuestionIsAloneInTheFlowItself(t *testing.T) {
	alone := map[string]bool{}
	var mu sync.Mutex
	h := &fakeHost{answer: func(_ context.Context, q Question) (Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		alone[q.Address] = q.Alone
		return Answer{Action: "approve", At: noon}, nil
	}}
	walked(t, `{start: a, nodes: {
		a: {ask: "?", max_visits: 2, action: "${{ visits.a > 1 ? 'on' : 'again' }}", next: {again: a, on: s, exhausted: end}},
		s: {flow: {nodes: {i: {ask: "?"}}}, next: {approve: b, reject: b}}, b: {branches: {x: {ask: "?"}, y: {ask: "?"}}, next: m},
		m: {map: "${{ [1, 2] }}", flow: {nodes: {i: {ask: "?"}}}}}}`, nil, h)
	want := map[string]bool{"a": true, "a#2": true, "s/i": false, "b/x": false, "b/y": false, "m[0]/i": false, "m[1]/i": false}
	if diff := cmp.Diff(want, alone); diff != "" {
		t.Error(diff)
	}
}
