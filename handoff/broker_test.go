package handoff

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
)

// withoutDirectories is the broker of a caller that has no sandbox.
func withoutDirectories(t *testing.T, change ...func(*Caller, *Limits)) (*Broker, *fakeRuns) {
	t.Helper()
	runs := newFakeRuns(t)
	runs.add("callee", callee)
	runs.add("caller", callee)
	caller := Caller{
		Run: idOf(1), Root: idOf(1), Unit: "caller", Grants: []string{"callee", "missing", "caller"}, Tree: NewTree(),
		Path: []Step{{Run: idOf(9), Unit: "root"}, {Run: idOf(1), Unit: "caller"}},
	}
	limits := Limits{}
	for _, c := range change {
		c(&caller, &limits)
	}
	return NewBroker(caller, runs, limits, nil), runs
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
	b, runs := withoutDirectories(t, func(c *Caller, _ *Limits) { c.Deadline = deadline })
	id, err := b.Start(t.Context(), Request{Target: "callee", Args: []byte(`{"n":1}`), Timeout: time.Minute})
	must(t, err)
	result, err := b.Await(t.Context(), id)
	must(t, err)
	if !result.Ended || !result.Success || string(result.Output) != `{"ok":true}` {
		t.Errorf("%+v", result)
	}
	call := runs.calls[0]
	if call.Target.Name != "callee" || string(call.Args.JSON()) != `{"n":1}` || call.Timeout != time.Minute || !call.Deadline.Equal(deadline) {
		t.Errorf("%+v", call)
	}
}

func TestACallWithoutArgumentsHasNone(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	_, err := b.Start(t.Context(), Request{Target: "callee"})
	must(t, err)
	if got := string(runs.calls[0].Args.JSON()); got != "{}" {
		t.Error(got)
	}
}

func TestEachRuleHoldsWithoutHTTP(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*Caller, *Limits)
		asked  Request
		rule   Rule
		kind   fault.Kind
	}{
		"grant":    {asked: Request{Target: "other"}, rule: RuleGrant, kind: fault.Forbidden},
		"cycle":    {asked: Request{Target: "caller"}, rule: RuleCycle, kind: fault.Conflict},
		"depth":    {change: func(_ *Caller, l *Limits) { l.Depth = 1 }, rule: RuleDepth, kind: fault.Conflict},
		"deadline": {change: func(c *Caller, _ *Limits) { c.Deadline = time.Unix(1, 0) }, rule: RuleDeadline, kind: fault.Deadline},
		"size":     {change: func(_ *Caller, l *Limits) { l.ArgsBytes = 3 }, asked: Request{Args: []byte(`{"n":1}`)}, rule: RuleSize, kind: fault.TooLarge},
		"calls":    {change: func(c *Caller, _ *Limits) { c.Path[0].Budgets.Calls = 1; c.Tree.Restore(BudgetCalls, idOf(9), 1) }, rule: RuleCalls, kind: fault.Busy},
		"contract": {asked: Request{Args: []byte(`{"n":"x"}`)}, kind: fault.Input},
		"no unit":  {asked: Request{Target: "missing"}, kind: fault.NotFound},
		"no JSON":  {asked: Request{Args: []byte(`{`)}, kind: fault.Input},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*Caller, *Limits) {}
			}
			b, runs := withoutDirectories(t, change)
			if c.asked.Target == "" {
				c.asked.Target = "callee"
			}
			_, err := b.Start(t.Context(), c.asked)
			var refusal *Refusal
			if errors.As(err, &refusal) != (c.rule != "") || refusal != nil && refusal.Rule != c.rule || !fault.Is(err, c.kind) {
				t.Errorf("%v: %#v", fault.KindOf(err), err)
			}
			if runs.started() != 0 {
				t.Error("it was started")
			}
		})
	}
}

func TestFilesThatTheCallerHasOpenedAreHandedOver(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	first, second := opened(t, "first"), opened(t, "second")
	_, err := b.Start(t.Context(), Request{
		Target: "callee", Args: []byte(`{"f":"./d/a.txt","fs":["d/a.txt","b.txt"]}`),
		Files: map[string]*os.File{"d/a.txt": first, "b.txt": second},
	})
	must(t, err)
	if diff := cmp.Diff(map[string]string{"d/a.txt": "first", "b.txt": "second"}, runs.copied[0]); diff != "" {
		t.Error(diff)
	}
	if got := string(runs.calls[0].Args.JSON()); got != `{"f":"d/a.txt","fs":["d/a.txt","b.txt"]}` {
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
			b, runs := withoutDirectories(t, func(_ *Caller, l *Limits) { l.FileBytes = 10 })
			_, err := b.Start(t.Context(), Request{Target: "callee", Args: []byte(c.args), Files: c.files})
			if !fault.Is(err, c.kind) || runs.started() != 0 {
				t.Errorf("%v: %v, %d started", fault.KindOf(err), err, runs.started())
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

func TestACallerWithDirectoriesMayGiveOpenedFilesToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("a", "of outgoing")
	_, err := w.h.broker.Start(t.Context(), Request{
		Target: "callee", Args: []byte(`{"fs":["a","b"]}`), Files: map[string]*os.File{"b": opened(t, "given")},
	})
	must(t, err)
	if diff := cmp.Diff(map[string]string{"a": "of outgoing", "b": "given"}, w.runs.copied[0]); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfAResultStayWhereTheyLie(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	made := []Output{{Name: "d/a", Path: "/elsewhere/d/a", SizeBytes: 3, SHA256: "00", Field: "f"}}
	runs.outcome = func(id string, _ Call) Result { return Result{ID: id, Ended: true, Success: true, Files: made} }
	id, err := b.Start(t.Context(), Request{Target: "callee"})
	must(t, err)
	result, err := b.Await(t.Context(), id)
	must(t, err)
	if diff := cmp.Diff(made, result.Files); diff != "" {
		t.Error(diff)
	}
	files, err := b.Deliver(t.Context(), id, result.Files)
	must(t, err)
	if diff := cmp.Diff([]PlacedFile{{Name: "d/a", Path: "/elsewhere/d/a", SizeBytes: 3, SHA256: "00", Field: "f"}}, files); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfAResultAreDeliveredIntoADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("a")
	id, err := w.h.broker.Start(t.Context(), Request{Target: "callee"})
	must(t, err)
	result, err := w.h.broker.Await(t.Context(), id)
	must(t, err)
	files, err := w.h.broker.Deliver(t.Context(), id, result.Files)
	must(t, err)
	if len(files) != 1 || files[0].Path != "/io/handoff/incoming/a" || read(t, w.path("io/handoff/incoming/a")) != id {
		t.Errorf("%+v", files)
	}
}

// transfer is the way to a caller whose directories are elsewhere.
type transfer struct {
	dir           string // where what is fetched comes to lie: …/io/handoff/outgoing
	fetched, sent []string
	done          int
	broken        error
}

func (f *transfer) Fetch(_ context.Context, names []string, _ int64) (string, func(), error) {
	f.fetched = append(f.fetched, names...)
	return f.dir, func() { f.done++ }, f.broken
}

func (f *transfer) Send(_ context.Context, names []string) error {
	f.sent = append(f.sent, names...)
	return f.broken
}

func TestFilesTravelToACallerElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way := &transfer{dir: w.path("fetched/io/handoff/outgoing")}
	write(t, way.dir+"/d/a", "fetched")
	w.caller.Transfer = way
	w.renew()
	w.makes("r")
	id, err := w.h.broker.Start(t.Context(), Request{
		Target: "callee", Args: []byte(`{"fs":["d/a","g"]}`), Files: map[string]*os.File{"g": opened(t, "given")},
	})
	must(t, err)
	if diff := cmp.Diff(map[string]string{"d/a": "fetched", "g": "given"}, w.runs.copied[0]); diff != "" {
		t.Error(diff)
	}
	result, err := w.h.broker.Await(t.Context(), id)
	must(t, err)
	_, err = w.h.broker.Deliver(t.Context(), id, result.Files)
	must(t, err)
	if diff := cmp.Diff([][]string{{"d/a"}, {"r"}}, [][]string{way.fetched, way.sent}); diff != "" || way.done != 1 {
		t.Errorf("%s, done %d times", diff, way.done)
	}
}

func TestAWayToACallerThatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way := &transfer{dir: w.path("nowhere"), broken: fault.New(fault.Unavailable, "it is gone")}
	w.caller.Transfer = way
	w.renew()
	asked := Request{Target: "callee", Args: []byte(`{"f":"a"}`)}
	if _, err := w.h.broker.Start(t.Context(), asked); !errors.Is(err, way.broken) {
		t.Errorf("%v", err)
	}
	if _, err := w.h.broker.Deliver(t.Context(), idOf(5), []Output{w.made(idOf(5), "r", "x")}); !errors.Is(err, way.broken) {
		t.Errorf("%v", err)
	}
	way.broken = nil
	if _, err := w.h.broker.Start(t.Context(), asked); !fault.Is(err, fault.Input) || way.done != 1 {
		t.Errorf("%v, done %d times", err, way.done)
	}
	if w.runs.started() != 0 || w.spent() != 0 {
		t.Errorf("%d started, %d counted", w.runs.started(), w.spent())
	}
}

func TestTheUnitsThatMayBeCalled(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	runs.add("secret", callee)
	units, err := b.Units(t.Context())
	must(t, err)
	if len(units) != 2 || units["callee"] != runs.units["callee"] || units["caller"] != runs.units["caller"] {
		t.Errorf("%v", units)
	}
	if _, err := b.Unit(t.Context(), "secret"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("%v", err)
	}
	runs.broken = errors.New("x")
	if _, err := b.Units(t.Context()); !errors.Is(err, runs.broken) {
		t.Errorf("%v", err)
	}
}

func TestAKeyJoinsTheCallThatItMade(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t, func(c *Caller, _ *Limits) { c.Path[0].Budgets = capsule.Budgets{Calls: 1} })
	first, err := b.Start(t.Context(), Request{Target: "callee", Key: "k"})
	must(t, err)
	again, err := b.Start(t.Context(), Request{Target: "callee", Key: "k"})
	must(t, err)
	if first != again || runs.started() != 1 {
		t.Errorf("%s, %s: %d started", first, again, runs.started())
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	runs.hold = make(chan struct{})
	id, err := b.Start(t.Context(), Request{Target: "callee"})
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
	runs.hold = make(chan struct{})
	id, err := b.Start(t.Context(), Request{Target: "callee"})
	must(t, err)
	if result, err := b.Cancel(t.Context(), id, "not needed"); err != nil || result.Ended {
		t.Errorf("%+v, %v", result, err)
	}
	close(runs.hold)
	if result, err := b.Cancel(t.Context(), id, "not needed"); err != nil || !result.Ended {
		t.Errorf("%+v, %v", result, err)
	}
	if diff := cmp.Diff([]string{id}, runs.cancels); diff != "" {
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
		for range 2 * maxStarting {
			calls.Go(func() {
				_, err := b.StartRead(t.Context(), func() (Request, error) {
					mu.Lock()
					reading++
					mu.Unlock()
					<-release
					return Request{Target: "callee"}, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if reading != maxStarting {
			t.Errorf("%d are read", reading)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := b.Start(ended, Request{Target: "callee"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(release)
		calls.Wait()
		if runs.started() != 2*maxStarting {
			t.Errorf("%d started", runs.started())
		}
	})
}

func TestARequestThatCanNotBeReadIsNoCall(t *testing.T) {
	t.Parallel()
	b, runs := withoutDirectories(t)
	broken := errors.New("broken")
	if _, err := b.StartRead(t.Context(), func() (Request, error) { return Request{}, broken }); !errors.Is(err, broken) || runs.started() != 0 {
		t.Errorf("%v", err)
	}
	if len(b.starting) != 0 {
		t.Error("its turn was not given back")
	}
}

// The broker may be used by code that serves no HTTP.
func TestTheBrokerKnowsNoHTTP(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	found := 0
	for _, file := range files {
		if !strings.Contains(read(t, file), "\nfunc (b *Broker)") {
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
	if found < 5 {
		t.Errorf("%d files are the broker's", found)
	}
}
