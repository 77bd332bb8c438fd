package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const a2aSchema = `{"input": {"type": "object", "properties": {"message": {"type": "string"}, "n": {"type": "integer"}, "doc": {"type": "string", "format": "file_path"}}},
 "output": {"type": "object", "properties": {"text": {"type": "string"}, "words": {"type": "integer"}, "report": {"type": "string", "format": "file_path"}}}}`

// leading is the host of a run whose questions have answers, and which stores what is to be kept.
type leading struct {
	alone
	x      *execution
	answer func(run.Question) (run.Answer, error)

	mu    sync.Mutex
	asked []run.Question
	kept  []json.RawMessage
	end   context.Context //nolint:containedctx // the admission of a process
}

func (l *leading) KeepSaved() error {
	raw, err := json.Marshal(l.x.Saved)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, raw)
	return err
}

func (l *leading) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if l.end != nil {
		context.AfterFunc(l.end, func() { cancel(context.Cause(l.end)) })
	}
	return ctx, func() { cancel(nil) }
}

func (l *leading) Aside(ctx context.Context, wait func()) error {
	wait()
	return context.Cause(ctx)
}

func (l *leading) Ask(_ context.Context, q run.Question) (run.Answer, error) {
	l.mu.Lock()
	l.asked = append(l.asked, q)
	l.mu.Unlock()
	return l.answer(q)
}

// last returns what was kept last.
func (l *leading) last() json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept[len(l.kept)-1]
}

// a2aBench has a unit whose agent speaks A2A.
func a2aBench(t *testing.T, url, more string) *harness {
	t.Helper()
	b := &harness{t: t, host: alone{}, secrets: t.TempDir(), file: map[string]string{"schema.json": a2aSchema}}
	b.kind = New(Options{Secrets: secrets.Files{Dir: b.secrets}})
	t.Cleanup(func() { _ = b.kind.Close() }) // it returns nil
	b.load(url, "  protocol: a2a\n"+more)
	return b
}

// errand makes the attempts of a new run with an input.
func (b *harness) errand(input string) (*execution, *leading) {
	b.t.Helper()
	x := b.execution()
	payload, err := contract.Decode([]byte(input), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	x.Input.Payload, x.Dir = payload, b.t.TempDir()
	if err := os.MkdirAll(x.InputDir(), 0o700); err != nil {
		b.t.Fatal(err)
	}
	l := &leading{alone: alone{}, x: x, answer: func(run.Question) (run.Answer, error) { return run.Answer{}, &run.Denied{Reason: "nobody"} }}
	x.LedBy(l, func(e run.Event) { b.events = append(b.events, e) })
	return x, l
}

// next makes the execution of the next process, which has what was kept.
func (b *harness) next(kept json.RawMessage, began *time.Time) (*execution, *leading) {
	b.t.Helper()
	x, l := b.errand(`{"message":"wait"}`)
	x.Saved, x.Record.State, x.Record.StartedAt = kept, api.Running, began
	x.Record.Transitions = append(x.Record.Transitions, api.Transition{State: api.Running})
	return x, l
}

func (b *harness) carriesOut(input string) (run.Result, *execution) {
	b.t.Helper()
	x, _ := b.errand(input)
	got, err := x.Attempt(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return got, x
}

func TestATaskElsewhereIsTheRuns(t *testing.T) {
	for _, form := range peertest.Forms {
		for _, stream := range []string{"", "  stream: true\n"} {
			t.Run(form.Name()+stream, func(t *testing.T) {
				far := peertest.New(t, form, true)
				b := a2aBench(t, far.URL, stream+"  auth: {secret: token}\n")
				write(t, filepath.Join(b.secrets, "token"), "s3cret-token")
				if err := os.Chmod(filepath.Join(b.secrets, "token"), 0o600); err != nil {
					t.Fatal(err)
				}
				for input, want := range map[string]string{
					`{"message":"hello"}`:   `{"text":"hello"}`,
					`{"message":"chunks"}`:  `{"text":"one two three"}`,
					`{"message":"message"}`: `{"text":"just a word"}`,
					`{"message":"data"}`:    `{"text":"of the data","words":3}`,
				} {
					got, _ := b.carriesOut(input)
					wants(t, got, api.Success, "", "", "")
					if string(got.Output) != want {
						t.Errorf("%s: %s", input, got.Output)
					}
				}
				for _, m := range far.Messages() {
					if m.ID != "0199aaaa-0000-7000-8000-000000000001" {
						t.Errorf("the message has the id %s", m.ID)
					}
				}
				headers, paths := far.Headers()
				for i, h := range headers {
					if h.Get("Authorization") != "Bearer s3cret-token" {
						t.Errorf("%s came with %q", paths[i], h.Get("Authorization"))
					}
				}
			})
		}
	}
}

func TestHowTasksElsewhereEnd(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], true)
	b := a2aBench(t, far.URL, "  stream: true\n")
	for input, c := range map[string]struct {
		outcome  api.Outcome
		category api.Category
		kind     string
		says     string
		of       string
	}{
		`{"message":"fail"}`:   {api.RemoteError, api.CategoryAgent, "remote_error", "in its own words: broke down", ""},
		`{"message":"reject"}`: {api.RemoteError, api.CategoryPermanent, "remote_error", "in its own words: not mine", "Rejected"},
		`{"message":"ask"}`:    {api.RemoteError, api.CategoryPermanent, "unanswered", "nobody", ""},
	} {
		got, _ := b.carriesOut(input)
		wants(t, got, c.outcome, c.category, c.kind, c.says)
		if got.Failure.Type != c.of {
			t.Errorf("%s: type %q", input, got.Failure.Type)
		}
	}
	if far.Cancels() != 1 {
		t.Errorf("%d tasks were cancelled, want that which nobody answered", far.Cancels())
	}
	progress := slices.ContainsFunc(b.events, func(e run.Event) bool { return e.Progress != nil && e.Progress.Message == "at it" })
	if !progress {
		t.Error("its words aren't progress")
	}
	b.load(far.URL, "  protocol: a2a\n")
	b.file["schema.json"] = strings.Replace(a2aSchema, `"words"`, `"lacking": {"type": "string"}}, "required": ["lacking"], "minProperties": 1, "patternProperties": {"words"`, 1)
	b.load(far.URL, "  protocol: a2a\n")
	got, _ := b.carriesOut(`{"message":"hello"}`)
	wants(t, got, api.ContractViolation, api.CategoryAgent, "contract_violation", "outputs break the contract")
}

func TestFilesOfATaskElsewhere(t *testing.T) {
	for _, form := range []peertest.Form{peertest.Forms[0], peertest.Forms[3]} {
		far := peertest.New(t, form, true)
		b := a2aBench(t, far.URL, "limits: {output: 1MB}\n")
		got, x := b.carriesOut(`{"message":"files"}`)
		wants(t, got, api.Success, "", "", "")
		var all []string
		for _, f := range got.Files {
			content, err := os.ReadFile(filepath.Join(x.OutputDir(), f.Name))
			all = append(all, f.Name+"="+string(content))
			if err != nil || f.SHA256 == "" || (f.Pointer != nil) != (f.Name == "report.txt") {
				t.Errorf("%+v %v", f, err)
			}
		}
		if want := "file-1.bin=inline file-3.txt=" + peertest.FarFile + " report.txt=named"; strings.Join(all, " ") != want || string(got.Output) != `{"report":"report.txt"}` {
			t.Errorf("%v, output %s", all, got.Output)
		}
		if w := x.Record.Warnings; len(w) != 1 || !strings.Contains(w[0], "another origin") {
			t.Errorf("warnings %q", w)
		}
		x, _ = b.errand(`{"message":"files"}`)
		x.Limits.OutputBytes = 15
		if got, err := x.Attempt(t.Context()); err != nil || got.Outcome != api.LimitExceeded || got.Failure.Kind != "output_limit" {
			t.Errorf("%+v %+v, %v", got, got.Failure, err)
		}
	}
}

func TestFilesOfAnInputGoAlong(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], true)
	b := a2aBench(t, far.URL, "")
	x, _ := b.errand(`{"message":"echo","n":1,"doc":"a.txt"}`)
	write(t, filepath.Join(x.InputDir(), "a.txt"), "content")
	got, err := x.Attempt(t.Context())
	if err != nil || got.Outcome != api.Success || len(got.Files) != 1 || got.Files[0].Name != "a.txt" {
		t.Fatalf("%+v %+v, %v", got, got.Failure, err)
	}
	parts := far.Messages()[0].Parts
	raw, _ := json.Marshal(parts)
	if want := `[{"text":"echo"},{"data":{"n":1}},{"raw":"Y29udGVudA==","filename":"a.txt","mediaType":"text/plain","metadata":{"field":"doc"}}]`; string(raw) != want {
		t.Errorf("%s", raw)
	}
	write(t, filepath.Join(b.secrets, "large"), strings.Repeat("x", maxInputFiles+1))
	ready := run.Input{Files: []run.PlacedFile{{Source: filepath.Join(b.secrets, "large")}}}
	if err := b.kind.Check(run.Request{Unit: b.unit}, ready); !fault.Is(err, fault.Input) {
		t.Error(err)
	}
}

func TestAQuestionOfATaskIsTheRuns(t *testing.T) {
	for _, form := range peertest.Forms {
		for _, stream := range []string{"", "  stream: true\n"} {
			far := peertest.New(t, form, true)
			b := a2aBench(t, far.URL, stream)
			x, l := b.errand(`{"message":"ask"}`)
			l.answer = func(run.Question) (run.Answer, error) {
				return run.Answer{Action: "answer", Form: map[string]any{"answer": "this"}}, nil
			}
			got, err := x.Attempt(t.Context())
			if err != nil || string(got.Output) != `{"text":"answered this"}` {
				t.Errorf("%s: %+v %+v, %v", form.Name(), got, got.Failure, err)
			}
			if len(l.asked) != 1 || l.asked[0].Text != "Which one?" || l.asked[0].Kind != api.QuestionInput || l.asked[0].Address != "a2a/1" {
				t.Errorf("%s: asked %+v", form.Name(), l.asked)
			}
			if m := far.Messages(); len(m) != 2 || m[1].ID != x.ID+"-1" {
				t.Errorf("%s: %d messages", form.Name(), len(m))
			}
		}
	}
	far := peertest.New(t, peertest.Forms[0], true)
	b := a2aBench(t, far.URL, "")
	x, l := b.errand(`{"message":"auth"}`)
	l.answer = func(run.Question) (run.Answer, error) { return run.Answer{Action: "reject"}, nil }
	if got, err := x.Attempt(t.Context()); err != nil || got.Failure == nil || got.Failure.Kind != "unanswered" || far.Cancels() != 1 {
		t.Errorf("%+v, %v, %d cancels", got.Failure, err, far.Cancels())
	}
	x, l = b.errand(`{"message":"auth"}`)
	l.answer = func(q run.Question) (run.Answer, error) {
		close(far.Release)
		return run.Answer{Action: q.Answers[0]}, nil
	}
	got, err := x.Attempt(t.Context())
	if err != nil || string(got.Output) != `{"text":"granted"}` || l.asked[0].Kind != api.QuestionAuth || l.asked[0].Answers[0] != "approve" {
		t.Errorf("%+v %+v, %v", got, got.Failure, err)
	}
}

func TestTheNextProcessGoesOnWithATask(t *testing.T) {
	for _, form := range peertest.Forms {
		for _, stream := range []string{"", "  stream: true\n"} {
			t.Run(form.Name()+stream, func(t *testing.T) {
				far := peertest.New(t, form, true)
				b := a2aBench(t, far.URL, stream)
				x, l := b.errand(`{"message":"wait"}`)
				ctx, die := context.WithCancelCause(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := x.Attempt(ctx)
					ended <- err
				}()
				testkit.Eventually(t, "the task is kept", func() bool {
					l.mu.Lock()
					defer l.mu.Unlock()
					return len(l.kept) > 0
				})
				die(runtime.ErrDetach)
				if err := <-ended; !errors.Is(err, runtime.ErrDetach) || far.Cancels() > 0 {
					t.Fatalf("%v, %d cancels", err, far.Cancels())
				}
				close(far.Release)
				began := time.Now()
				y, _ := b.next(l.last(), &began)
				got, err := y.Resume(t.Context())
				if err != nil || got.Outcome != api.Success || len(far.Messages()) != 1 {
					t.Errorf("%+v %+v, %v; %d messages", got, got.Failure, err, len(far.Messages()))
				}
			})
		}
	}
	t.Run("one that is to be cancelled is cancelled there", func(t *testing.T) {
		far := peertest.New(t, peertest.Forms[0], true)
		b := a2aBench(t, far.URL, "")
		x, l := b.errand(`{"message":"wait"}`)
		ctx, die := context.WithCancelCause(t.Context())
		go func() {
			testkit.Eventually(t, "the task is kept", func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return len(l.kept) > 0
			})
			die(runtime.ErrDetach)
		}()
		if _, err := x.Attempt(ctx); !errors.Is(err, runtime.ErrDetach) {
			t.Fatal(err)
		}
		y, next := b.next(l.last(), nil)
		next.cancelled = errBecause
		if got, err := y.Resume(t.Context()); err != nil || got.Outcome != api.WasCancelled || far.Cancels() != 1 {
			t.Errorf("%+v, %v, %d cancels", got, err, far.Cancels())
		}
	})
	t.Run("one that was asked and had told of no task is not asked again", func(t *testing.T) {
		far := peertest.New(t, peertest.Forms[0], true)
		b := a2aBench(t, far.URL, "")
		y, _ := b.next(json.RawMessage(`{"at":{}}`), nil)
		if got, err := y.Resume(t.Context()); err != nil || got.Failure == nil || got.Failure.Category != api.CategoryPermanent || len(far.Messages()) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// When the answer to a message is lost on the way, nobody knows whether it came: the question that still stands tells.
func TestALostAnswerToAMessageIsNotRepeated(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], true)
	b := a2aBench(t, far.URL, "")
	far.Gate(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".json") {
			return true
		}
		panic(http.ErrAbortHandler)
	})
	got, _ := b.carriesOut(`{"message":"hello"}`)
	wants(t, got, api.SystemError, api.CategoryPermanent, "unavailable", "does not answer")
	if _, paths := far.Headers(); len(paths) != 2 {
		t.Errorf("asked at %q", paths)
	}
}

func TestATaskIsCancelledWithItsRun(t *testing.T) {
	for _, stream := range []string{"", "  stream: true\n"} {
		for name, c := range map[string]struct {
			cause   error // nil: the run's own limit of time
			outcome api.Outcome
		}{"cancelled": {errBecause, api.WasCancelled}, "out of time": {nil, api.TimedOut}, "with its caller": {run.ErrDeadline, api.TimedOut}} {
			t.Run(name+stream, func(t *testing.T) {
				for limit := time.Second; limit < time.Minute; limit *= 2 { // it may be over before there is a task
					far := peertest.New(t, peertest.Forms[0], true)
					b := a2aBench(t, far.URL, stream)
					x, l := b.errand(`{"message":"wait"}`)
					kept := func() bool {
						l.mu.Lock()
						defer l.mu.Unlock()
						return len(l.kept) > 0
					}
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if c.cause == nil {
						x.Limits.Timeout = limit
					} else {
						go func() {
							testkit.Eventually(t, "the task is kept", kept)
							cancel(c.cause)
						}()
					}
					got, err := x.Attempt(ctx)
					if c.cause == nil && !kept() {
						continue
					}
					if err != nil || got.Outcome != c.outcome || far.Cancels() != 1 {
						t.Errorf("%+v %+v, %v; %d cancels", got, got.Failure, err, far.Cancels())
					}
					return
				}
				t.Error("the agent never had the task in time")
			})
		}
	}
}

func TestAnAgentThatIsGoneForAWhileIsWaitedFor(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], true)
	b := a2aBench(t, far.URL, "  stream: true\n")
	x, l := b.errand(`{"message":"wait"}`)
	refused := 0
	var mu sync.Mutex
	go func() {
		testkit.Eventually(t, "the task is kept", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.kept) > 0
		})
		far.Gate(func(w http.ResponseWriter, _ *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if refused++; refused > 3 {
				return true
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return false
		})
		far.CloseClientConnections()
		close(far.Release)
	}()
	got, err := x.Attempt(t.Context())
	if err != nil || got.Outcome != api.Success || len(far.Messages()) != 1 {
		t.Errorf("%+v %+v, %v", got, got.Failure, err)
	}
}
