package handoff_test

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/handofftest"
)

// withoutDirectories is the broker of a caller that has no sandbox.
func withoutDirectories(t *testing.T, change ...func(*handoff.Caller, *handoff.Limits)) (*handoff.Broker, *handofftest.Runs) {
	t.Helper()
	runs := handofftest.NewRuns(t)
	runs.Add("callee", callee)
	runs.Add("caller", callee)
	caller := handoff.Caller{
		Run: idOf(1), Root: idOf(1), Unit: "caller", Grants: []string{"callee", "missing", "caller"}, Tree: handoff.NewTree(),
		Path: []handoff.Step{{Run: idOf(9), Unit: "root"}, {Run: idOf(1), Unit: "caller"}},
	}
	limits := handoff.Limits{}
	for _, c := range change {
		c(&caller, &limits)
	}
	return handoff.NewBroker(caller, runs, limits, nil), runs
}

// opened is a file that a caller has opened.
func opened(t *testing.T, content string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, content)
	f, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestACallerWithoutASandboxCalls(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(time.Hour)
	b, runs := withoutDirectories(t, func(c *handoff.Caller, _ *handoff.Limits) { c.Deadline = deadline })
	id, err := b.Start(t.Context(), handoff.Request{Target: "callee", Args: []byte(`{"n":1}`), Timeout: time.Minute})
	must(t, err)
	result, err := b.Await(t.Context(), id)
	must(t, err)
	if !result.Ended || !result.Success || string(result.Output) != `{"ok":true}` {
		t.Errorf("%+v", result)
	}
	call := runs.Calls[0]
	if call.Target.Name != "callee" || string(call.Args.JSON()) != `{"n":1}` || call.Timeout != time.Minute || !call.Deadline.Equal(deadline) {
		t.Errorf("%+v", call)
	}
}

func TestACallWithoutArgumentsHasNone(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	_, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	if got := string(runs.Calls[0].Args.JSON()); got != "{}" {
		t.Error(got)
	}
}

func TestEachRuleHoldsWithoutHTTP(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*handoff.Caller, *handoff.Limits)
		asked  handoff.Request
		rule   handoff.Rule
		kind   fault.Kind
	}{
		"grant":    {asked: handoff.Request{Target: "other"}, rule: handoff.RuleGrant, kind: fault.Forbidden},
		"cycle":    {asked: handoff.Request{Target: "caller"}, rule: handoff.RuleCycle, kind: fault.Conflict},
		"depth":    {change: func(_ *handoff.Caller, l *handoff.Limits) { l.Depth = 1 }, rule: handoff.RuleDepth, kind: fault.Conflict},
		"deadline": {change: func(c *handoff.Caller, _ *handoff.Limits) { c.Deadline = time.Unix(1, 0) }, rule: handoff.RuleDeadline, kind: fault.Deadline},
		"size":     {change: func(_ *handoff.Caller, l *handoff.Limits) { l.ArgsBytes = 3 }, asked: handoff.Request{Args: []byte(`{"n":1}`)}, rule: handoff.RuleSize, kind: fault.TooLarge},
		"calls": {change: func(c *handoff.Caller, _ *handoff.Limits) {
			c.Path[0].Budgets.Calls = 1
			c.Tree.Restore(handoff.BudgetCalls, idOf(9), 1)
		}, rule: handoff.RuleCalls, kind: fault.Busy},
		"contract": {asked: handoff.Request{Args: []byte(`{"n":"x"}`)}, kind: fault.Input},
		"no unit":  {asked: handoff.Request{Target: "missing"}, kind: fault.NotFound},
		"no JSON":  {asked: handoff.Request{Args: []byte(`{`)}, kind: fault.Input},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*handoff.Caller, *handoff.Limits) {}
			}
			b, runs := withoutDirectories(t, change)
			if c.asked.Target == "" {
				c.asked.Target = "callee"
			}
			_, err := b.Start(t.Context(), c.asked)
			var refusal *handoff.Refusal
			if errors.As(err, &refusal) != (c.rule != "") || refusal != nil && refusal.Rule != c.rule || !fault.Is(err, c.kind) {
				t.Errorf("%v: %#v", fault.KindOf(err), err)
			}
			if runs.Started() != 0 {
				t.Error("it was started")
			}
		})
	}
}

func TestFilesThatTheCallerHasOpenedAreHandedOver(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	first, second := opened(t, "first"), opened(t, "second")
	_, err := b.Start(t.Context(), handoff.Request{
		Target: "callee", Args: []byte(`{"f":"./d/a.txt","fs":["d/a.txt","b.txt"]}`),
		Files: map[string]*os.File{"d/a.txt": first, "b.txt": second},
	})
	must(t, err)
	if diff := cmp.Diff(map[string]string{"d/a.txt": "first", "b.txt": "second"}, runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
	if got := string(runs.Calls[0].Args.JSON()); got != `{"f":"d/a.txt","fs":["d/a.txt","b.txt"]}` {
		t.Error(got)
	}
	for _, f := range []*os.File{first, second} {
		if _, err := f.Stat(); err != nil {
			t.Errorf("the caller's file was closed: %v", err)
		}
	}
}

func TestFilesThatCanNotBeHandedOver(t *testing.T) {
	t.Parallel()
	directory, err := os.Open(t.TempDir())
	must(t, err)
	defer directory.Close()
	closed := opened(t, "x")
	must(t, closed.Close())
	cases := map[string]struct {
		args  string
		files map[string]*os.File
		kind  fault.Kind
		want  string
	}{
		"one that was not given":      {`{"f":"x"}`, nil, fault.Input, `/f: names file "x", which was not given with the call`},
		"another one was given":       {`{"fs":["x","y"]}`, map[string]*os.File{"x": opened(t, "1")}, fault.Input, `/fs/1: names file "y", which was not given with the call`},
		"one that nothing names":      {`{}`, map[string]*os.File{"x": opened(t, "1")}, fault.Input, ""},
		"two of one name":             {`{"fs":["x","./x"]}`, map[string]*os.File{"x": opened(t, "1"), "./x": opened(t, "2")}, fault.Input, `/fs/1: two files are to have the name "x"`},
		"a directory":                 {`{"f":"x"}`, map[string]*os.File{"x": directory}, fault.Input, `/f: names file "x", which is a directory, not a regular file`},
		"one that was closed":         {`{"f":"x"}`, map[string]*os.File{"x": closed}, fault.Internal, ""},
		"larger than all may be":      {`{"f":"x"}`, map[string]*os.File{"x": opened(t, "12345678901")}, fault.TooLarge, ""},
		"a name that leads elsewhere": {`{"f":"../x"}`, map[string]*os.File{"../x": opened(t, "1")}, fault.Input, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, runs := withoutDirectories(t, func(_ *handoff.Caller, l *handoff.Limits) { l.FileBytes = 10 })
			_, err := b.Start(t.Context(), handoff.Request{Target: "callee", Args: []byte(c.args), Files: c.files})
			if !fault.Is(err, c.kind) || runs.Started() != 0 {
				t.Errorf("%v: %v, %d started", fault.KindOf(err), err, runs.Started())
			}
			if c.want != "" {
				wantFinding(t, err, c.want)
			}
		})
	}
}

func wantFinding(t *testing.T, err error, want string) {
	t.Helper()
	public := fault.Public(err)
	if len(public.Findings) != 1 || public.Findings[0].Pointer+": "+public.Findings[0].Message != want {
		t.Errorf("findings %+v", public.Findings)
	}
	if strings.Contains(public.Hint+public.Findings[0].Hint, "/io/") {
		t.Errorf("a hint names a directory that the caller doesn't have: %+v", public)
	}
}

func TestFilesOfAResultStayWhereTheyLie(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	made := []handoff.Output{{Name: "d/a", Path: "/elsewhere/d/a", SizeBytes: 3, SHA256: "00", Field: "f"}}
	runs.Outcome = func(id string, _ handoff.Call) handoff.Result {
		return handoff.Result{ID: id, Ended: true, Success: true, Files: made}
	}
	id, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	result, err := b.Await(t.Context(), id)
	must(t, err)
	if diff := cmp.Diff(made, result.Files); diff != "" {
		t.Error(diff)
	}
	files, err := b.Deliver(t.Context(), id, result.Files)
	must(t, err)
	if diff := cmp.Diff([]handoff.PlacedFile{{Name: "d/a", Path: "/elsewhere/d/a", SizeBytes: 3, SHA256: "00", Field: "f"}}, files); diff != "" {
		t.Error(diff)
	}
}

func TestTheUnitsThatMayBeCalled(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	runs.Add("secret", callee)
	units, err := b.Units(t.Context())
	must(t, err)
	if len(units) != 2 || units["callee"] != runs.Units["callee"] || units["caller"] != runs.Units["caller"] {
		t.Errorf("%v", units)
	}
	if _, err := b.Unit(t.Context(), "secret"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("%v", err)
	}
	runs.Broken = errors.New("x")
	if _, err := b.Units(t.Context()); !errors.Is(err, runs.Broken) {
		t.Errorf("%v", err)
	}
}

func TestAKeyJoinsTheCallThatItMade(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t, func(c *handoff.Caller, _ *handoff.Limits) { c.Path[0].Budgets = capsule.Budgets{Calls: 1} })
	first, err := b.Start(t.Context(), handoff.Request{Target: "callee", Key: "k"})
	must(t, err)
	again, err := b.Start(t.Context(), handoff.Request{Target: "callee", Key: "k"})
	must(t, err)
	if first != again || runs.Started() != 1 {
		t.Errorf("%s, %s: %d started", first, again, runs.Started())
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	runs.Hold = make(chan struct{})
	id, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if result, err := b.Await(ctx, id); err != nil || result.Ended || result.State != "running" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := b.Await(t.Context(), idOf(999)); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestCancelReturnsAtOnce(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	runs.Hold = make(chan struct{})
	id, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	if result, err := b.Cancel(t.Context(), id, "not needed"); err != nil || result.Ended {
		t.Errorf("%+v, %v", result, err)
	}
	close(runs.Hold)
	if result, err := b.Cancel(t.Context(), id, "not needed"); err != nil || !result.Ended {
		t.Errorf("%+v, %v", result, err)
	}
	if diff := cmp.Diff([]string{id}, runs.Cancels); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Cancel(t.Context(), idOf(999), "x"); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestFewCallsAreReadAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, runs := withoutDirectories(t)
		release := make(chan struct{})
		reading := 0
		var mu sync.Mutex
		var calls sync.WaitGroup
		for range 2 * handoff.MaxStarting {
			calls.Go(func() {
				_, err := b.StartRead(t.Context(), func() (handoff.Request, error) {
					mu.Lock()
					reading++
					mu.Unlock()
					<-release
					return handoff.Request{Target: "callee"}, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if reading != handoff.MaxStarting {
			t.Errorf("%d are read", reading)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := b.Start(ended, handoff.Request{Target: "callee"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(release)
		calls.Wait()
		if runs.Started() != 2*handoff.MaxStarting {
			t.Errorf("%d started", runs.Started())
		}
	})
}

func TestARequestThatCanNotBeReadIsNoCall(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	broken := errors.New("broken")
	if _, err := b.StartRead(t.Context(), func() (handoff.Request, error) { return handoff.Request{}, broken }); !errors.Is(err, broken) || runs.Started() != 0 {
		t.Errorf("%v", err)
	}
	if b.Starting() != 0 {
		t.Error("its turn was not given back")
	}
}

func TestTheKeyOfACallThatIsRefusedIsForgotten(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	runs.Refuse = fault.New(fault.Busy, "the queue is full")
	if _, err := b.Start(t.Context(), handoff.Request{Target: "callee", Key: "k"}); !errors.Is(err, runs.Refuse) || b.Keys() != 0 {
		t.Errorf("%v, %d keys", err, b.Keys())
	}
}

// The broker may be used by code that serves no HTTP.
func TestTheBrokerKnowsNoHTTP(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		found++
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		must(t, err)
		for _, i := range parsed.Imports {
			if i.Path.Value == `"net/http"` {
				t.Errorf("%s imports it", file)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d files are the broker's", found)
	}
}
