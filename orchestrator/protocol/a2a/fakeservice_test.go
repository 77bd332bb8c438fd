package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

// fakeService is an orchestrator whose units are as the test says. A run is over at once, unless
// the test holds it.
type fakeService struct {
	tb        testing.TB
	mu        sync.Mutex
	agents    map[string]Agent
	sessions  map[string]api.Session
	runs      []*fakeRun
	files     map[string]string // contents, by run and name
	questions map[string]api.Question
	answers   map[string]api.Answer
	told      map[string]bool // digests of messages to runs whose answer wasn't delivered
	heard     []string        // runs that were delivered
	patch     string
	hold      bool
	leaves    bool // the service has stopped waiting: its runs are left to the next process
	refuses   error
	bars      map[string]error // agents that nobody may ask
	submitted []spool.Submission
	// delivering is called as a client is said to have its answer; nil: nothing is
	delivering  func()
	undelivered bool          // what is delivered is not noted
	news        chan struct{} // closed with each change
	eventsRead  atomic.Int64
}

type fakeRun struct {
	record api.Record
	events []api.Event
	resend string
	heard  bool
}

const echoSchema = `{"input":{"type":"object","properties":{"message":{"type":"string"},"count":{"type":"integer"},"doc":{"type":"string","format":"file_path"},"more":{"type":"array","items":{"type":"string","format":"file_path"}}}},
"output":{"type":"object","properties":{"text":{"type":"string"}}}}`

func newFake(tb testing.TB) *fakeService {
	f := &fakeService{
		tb:     tb,
		agents: map[string]Agent{}, sessions: map[string]api.Session{}, files: map[string]string{}, questions: map[string]api.Question{},
		answers: map[string]api.Answer{}, told: map[string]bool{}, news: make(chan struct{}),
	}
	f.add("echo", echoSchema)
	f.add("other", `{"input":{"type":"object","properties":{"n":{"type":"integer"}}},"output":{"type":"object"}}`)
	return f
}

var born = time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)

func (f *fakeService) add(name, schema string) {
	f.agents[name] = Agent{
		Unit: api.Unit{
			Name: name, Kind: "capsule", Version: "v-" + name, Description: "Does " + name + ".", Access: "read-only", Since: &born,
			Policy: &api.UnitPolicy{OutputBytes: 1 << 20},
		},
		Schema: []byte(schema), Tags: []string{"test"},
	}
}

func (f *fakeService) changed() { close(f.news); f.news = make(chan struct{}) }

func (f *fakeService) Units(context.Context) ([]api.Unit, error) {
	var all []api.Unit
	for _, a := range f.agents {
		all = append(all, a.Unit)
	}
	slices.SortFunc(all, func(x, y api.Unit) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

func (f *fakeService) Admits(_ context.Context, unit string) error { return f.bars[unit] }

func (f *fakeService) Agent(_ context.Context, name string) (Agent, error) {
	if a, ok := f.agents[name]; ok {
		return a, nil
	}
	return Agent{}, fault.New(fault.NotFound, "there is no unit")
}

func (f *fakeService) Session(_ context.Context, id string) (api.Session, error) {
	if s, ok := f.sessions[id]; ok {
		return s, nil
	}
	return api.Session{}, fault.New(fault.NotFound, "there is no session")
}

func runID(n int) string { return fmt.Sprintf("0198c0de-0000-7000-8000-%012d", n) }

func (f *fakeService) NewSpool() (*spool.Spool, error) {
	return spool.New(f.tb.TempDir(), func(int64) error { return nil })
}

func (f *fakeService) CreateSession(_ context.Context, unit string, _ *spool.Spool) (api.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	session := api.Session{ID: fmt.Sprintf("0198c0de-5555-7000-8000-%012d", len(f.sessions)+1), Unit: unit}
	f.sessions[session.ID] = session
	return session, nil
}

func (f *fakeService) CloseSession(_ context.Context, id, _ string) (api.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	session := f.sessions[id]
	delete(f.sessions, id)
	return session, nil
}

func (f *fakeService) Submit(_ context.Context, sub spool.Submission) (_ api.Record, joined bool, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return api.Record{}, false, f.refuses
	}
	if strings.Contains(string(sub.Input), "panic") {
		panic("canary")
	}
	for _, r := range f.runs {
		if r.resend == sub.Resend && !r.heard {
			return r.record, true, nil
		}
	}
	id := runID(len(f.runs) + 1)
	f.receive(id, sub.Files)
	f.submitted = append(f.submitted, sub)
	at := born.Add(time.Duration(len(f.runs)) * time.Minute)
	r := &fakeRun{resend: sub.Resend, record: api.Record{
		ID: id, Unit: sub.Unit, State: api.Idle, Context: sub.Context, Session: sub.Session, CreatedAt: at, ChangedAt: &at, Input: sub.Input,
	}}
	f.runs = append(f.runs, r)
	f.tell(r, api.Transition{State: api.Idle, At: at})
	f.tell(r, sub.Message)
	f.enter(r, api.Starting)
	f.enter(r, api.Running)
	if !f.hold {
		f.succeed(r, string(sub.Input))
	}
	return r.record, false, nil
}

func (f *fakeService) receive(run string, files *spool.Spool) {
	for _, file := range files.Files() {
		raw, _ := os.ReadFile(file.Path)
		f.files[run+"/"+file.Name] = string(raw)
	}
}

func (f *fakeService) tell(r *fakeRun, data api.EventData) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	r.events = append(r.events, api.Event{Seq: int64(len(r.events) + 1), Type: data.EventType(), Data: raw})
	f.changed()
}

func (f *fakeService) enter(r *fakeRun, state api.State) {
	at := r.record.ChangedAt.Add(time.Second)
	r.record.State, r.record.ChangedAt = state, &at
	f.tell(r, api.Transition{State: state, At: at})
}

func (f *fakeService) succeed(r *fakeRun, text string) {
	raw, _ := json.Marshal(map[string]string{"text": text})
	r.record.Output = raw
	f.end(r, api.Completed, api.Success)
}

func (f *fakeService) end(r *fakeRun, state api.State, outcome api.Outcome) {
	f.enter(r, state)
	r.record.Outcome, r.record.FinishedAt = outcome, r.record.ChangedAt
	f.tell(r, api.EndEvent{State: state, Outcome: outcome})
}

// last changes the newest run.
func (f *fakeService) last(change func(*fakeRun)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.runs[len(f.runs)-1])
}

func (f *fakeService) find(id string) (*fakeRun, error) {
	for _, r := range f.runs {
		if r.record.ID == id {
			return r, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no run")
}

func (f *fakeService) SayResent(_ context.Context, run, resend string, m api.MessageEvent) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(run)
	if err != nil {
		return err
	}
	f.told[resend] = true
	f.tell(r, m)
	return nil
}

func (f *fakeService) WasTold(_ context.Context, _, resend string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[resend], nil
}

func (f *fakeService) Delivered(_ context.Context, run, resend string) error {
	f.mu.Lock()
	delivering := f.delivering
	f.mu.Unlock()
	if delivering != nil {
		delivering()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, run)
	f.changed()
	if f.undelivered {
		return nil
	}
	r, err := f.find(run)
	if err == nil && r.resend == resend {
		r.heard = true
	}
	delete(f.told, resend)
	return err
}

func (f *fakeService) ask(r *fakeRun, q api.Question) {
	f.questions[q.ID] = q
	r.record.Question = &api.OpenQuestion{ID: q.ID, Kind: q.Kind}
	f.tell(r, api.QuestionEvent{ID: q.ID, State: api.QuestionOpen})
}

func (f *fakeService) Question(_ context.Context, id string) (api.Question, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.questions[id], nil
}

func (f *fakeService) AnswerResent(_ context.Context, _, resend, id string, a api.Answer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[resend] = true
	f.answers[id] = a
	for _, r := range f.runs {
		if r.record.Question != nil && r.record.Question.ID == id {
			r.record.Question = nil
			f.tell(r, api.QuestionEvent{ID: id, State: api.QuestionAnswered})
			f.succeed(r, "answered")
		}
	}
	return nil
}

func (f *fakeService) Get(_ context.Context, id string) (api.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err != nil {
		return api.Record{}, err
	}
	return r.record, nil
}

func (f *fakeService) Await(ctx context.Context, id string) (api.Record, error) {
	return f.await(ctx, id, func(r api.Record) bool { return r.Outcome != "" })
}

func (f *fakeService) AwaitAsked(ctx context.Context, id string) (api.Record, error) {
	return f.await(ctx, id, func(r api.Record) bool { return r.Outcome != "" || r.Question != nil })
}

func (f *fakeService) await(ctx context.Context, id string, is func(api.Record) bool) (api.Record, error) {
	for {
		f.mu.Lock()
		news := f.news
		f.mu.Unlock()
		record, err := f.Get(ctx, id)
		if err != nil || is(record) || f.leaves {
			return record, err
		}
		select {
		case <-ctx.Done():
			return record, nil
		case <-news:
		}
	}
}

func (f *fakeService) Changed(_ context.Context, filter api.ChangedFilter) (api.ChangedPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []api.Record
	for _, r := range slices.Backward(f.runs) {
		c := r.record
		if (filter.Unit == "" || c.Unit == filter.Unit) && (filter.Context == "" || contextOf(c) == filter.Context) &&
			(filter.States == nil || slices.Contains(filter.States, c.State)) && !c.ChangedAt.Before(filter.Since) {
			all = append(all, c)
		}
	}
	page := api.ChangedPage{Total: len(all)}
	from := 0
	if filter.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(filter.Cursor); err != nil || from > len(all) {
			return page, fault.New(fault.BadRequest, "the cursor is %q", filter.Cursor)
		}
	}
	to := min(from+filter.Limit, len(all))
	page.Runs = all[from:to]
	if to < len(all) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}

func (f *fakeService) Past(_ context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		f.mu.Lock()
		r, err := f.find(id)
		var events []api.Event
		if err == nil {
			events = slices.Clone(r.events[min(int(after), len(r.events)):]) // their numbers are 1, 2, 3
		}
		f.mu.Unlock()
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		for _, e := range events {
			f.eventsRead.Add(1)
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *fakeService) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for {
			f.mu.Lock()
			news := f.news
			f.mu.Unlock()
			for e, err := range f.Past(ctx, id, after) {
				after = e.Seq
				if !yield(e, err) || e.Type == api.EventEnd || err != nil {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(api.Event{}, context.Cause(ctx))
				return
			case <-news:
			}
		}
	}
}

func (f *fakeService) Cancel(_ context.Context, id, _ string) (api.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err != nil {
		return api.Record{}, err
	}
	if r.record.Outcome != "" {
		return api.Record{}, fault.New(fault.Conflict, "it has ended")
	}
	r.record.Error = &api.RunError{Kind: "cancelled", Message: "cancelled"}
	f.end(r, api.Cancelled, api.WasCancelled)
	return r.record, nil
}

func (f *fakeService) Open(_ context.Context, run, name string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, ok := f.files[run+"/"+name]
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no file")
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

func (f *fakeService) OpenArtifact(ctx context.Context, run, _, name string) (io.ReadCloser, error) {
	return f.Open(ctx, run, name)
}

func (f *fakeService) Patch(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(f.patch)), nil
}

func (f *fakeService) FullName(_ context.Context, name string) string { return name }
