package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

// fakeService is an orchestrator whose units are as the test says. A run is over at once,
// unless the test holds it.
type fakeService struct {
	mu        sync.Mutex
	units     []api.Unit
	schemas   map[string]string
	runs      map[string]*api.Record
	files     map[string]string // contents, by run and name
	events    []api.Event
	submitted []Submission
	contents  []string // of the files that were submitted
	cancelled []string
	hold      bool
	ended     chan struct{} // closed: held runs are over
	outcome   func(Submission, *api.Record)
	asking    fakeQuestions
	refuses   error
}

const anySchema = `{"input":{"type":"object"},"output":{"type":"object"}}`

func newFake(units ...string) *fakeService {
	f := &fakeService{schemas: map[string]string{}, runs: map[string]*api.Record{}, files: map[string]string{}, ended: make(chan struct{})}
	for _, name := range units {
		f.add(name, anySchema)
	}
	return f
}

func (f *fakeService) add(name, schema string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.units = append(f.units, api.Unit{Name: name, Kind: "capsule", Version: fmt.Sprint(len(f.units)), Description: "Does " + name + ".", Access: "read-only", Policy: &api.UnitPolicy{Network: "none"}})
	f.schemas[name] = schema
}

func (f *fakeService) Units(context.Context) ([]api.Unit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]api.Unit{}, f.units...), nil
}

func (f *fakeService) Schema(_ context.Context, name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte(f.schemas[name]), nil
}

func idOf(n int) string { return fmt.Sprintf("0198c0de-0000-7000-8000-%012d", n) }

func (f *fakeService) Submit(_ context.Context, sub Submission) (api.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return api.Record{}, f.refuses
	}
	if strings.Contains(string(sub.Input), "panic") {
		panic("canary")
	}
	for _, file := range sub.Files {
		raw, err := io.ReadAll(file.Content)
		if err != nil {
			return api.Record{}, err
		}
		f.contents = append(f.contents, string(raw))
	}
	f.submitted = append(f.submitted, sub)
	r := &api.Record{ID: idOf(len(f.runs) + 1), Unit: sub.Unit, State: api.Running, Metadata: sub.Metadata, CreatedAt: time.Now()}
	f.runs[r.ID] = r
	switch {
	case len(f.asking.each) > 0:
		for _, q := range f.asking.each {
			f.ask(r, q)
		}
	case !f.hold:
		f.end(sub, r)
	}
	return *r, nil
}

func (f *fakeService) end(sub Submission, r *api.Record) {
	r.State, r.Outcome, r.Output = api.Completed, api.Success, sub.Input
	if f.outcome != nil {
		f.outcome(sub, r)
	}
}

// finish ends the runs that are held.
func (f *fakeService) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		if r.Outcome == "" {
			f.end(Submission{Input: json.RawMessage("{}")}, r)
		}
	}
	close(f.ended)
}

func (f *fakeService) Get(_ context.Context, id string) (api.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.runs[id]; r != nil {
		shown := *r
		if open := f.asking.open(id); len(open) > 0 && r.Outcome == "" {
			shown.Question = &api.OpenQuestion{ID: open[0].ID, Kind: open[0].Kind}
		}
		return shown, nil
	}
	return api.Record{}, fault.New(fault.NotFound, "there is no such run")
}

func (f *fakeService) Await(ctx context.Context, id string) (api.Record, error) {
	return f.await(ctx, id, func(r api.Record) bool { return r.Outcome != "" })
}

func (f *fakeService) await(ctx context.Context, id string, over func(api.Record) bool) (api.Record, error) {
	for {
		changed := f.asking.next()
		record, err := f.Get(ctx, id)
		if err != nil || over(record) || ctx.Err() != nil {
			return record, err
		}
		select {
		case <-ctx.Done():
		case <-f.ended:
			return f.Get(ctx, id)
		case <-changed:
		}
	}
}

func (f *fakeService) Events(ctx context.Context, run string, _ int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for _, e := range f.events {
			if !yield(e, nil) {
				return
			}
		}
		f.asking.tell(ctx, run, yield)
	}
}

func (f *fakeService) Cancel(_ context.Context, id, reason string) (api.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[id]
	if r.Outcome != "" {
		return api.Record{}, fault.New(fault.Conflict, "it has ended")
	}
	r.State, r.Outcome = api.Cancelled, api.WasCancelled
	f.cancelled = append(f.cancelled, id)
	r.Error = &api.RunError{Kind: "cancelled", Message: "the run was cancelled: " + reason}
	f.asking.change(func() {})
	return *r, nil
}

func (f *fakeService) Open(_ context.Context, id string, file api.File) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, there := f.files[id+"/"+file.Name]
	if !there {
		return nil, errors.New("canary: the file is gone")
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// keepFile has a run with one file.
func (f *fakeService) keepFile(name, content string) (run string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := idOf(len(f.runs) + 1)
	f.runs[id] = &api.Record{ID: id, Outcome: api.Success, Files: []api.File{{Name: name, SizeBytes: int64(len(content))}}}
	f.files[id+"/"+name] = content
	return id
}
