package agents

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

const runID = "0198c0de-0000-7000-8000-0123456789ab"

// fakeService is an orchestrator with the one unit "worker", whose run is as the test says.
type fakeService struct {
	mu        sync.Mutex
	record    api.Record
	events    []api.Event
	trouble   error // that ends the events
	refuses   error // what Submit answers with
	notReady  error
	submitted []spool.Submission
	cancelled []string
}

func newFake(outcome api.Outcome) *fakeService {
	return &fakeService{record: api.Record{ID: runID, Unit: "worker", Outcome: outcome, Output: []byte(`{"n":1}`)}}
}

func (f *fakeService) Submit(_ context.Context, sub spool.Submission) (api.Record, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, sub)
	return f.record, false, f.refuses
}

func (f *fakeService) Get(context.Context, string) (api.Record, error) { return f.record, nil }

func (f *fakeService) Await(ctx context.Context, _ string) (api.Record, error) {
	if f.record.Outcome == "" {
		<-ctx.Done()
	}
	return f.record, nil
}

func (f *fakeService) Events(context.Context, string, int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for _, e := range f.events {
			if !yield(e, nil) {
				return
			}
		}
		if f.trouble != nil {
			yield(api.Event{}, f.trouble)
		}
	}
}

func (f *fakeService) Cancel(_ context.Context, id, _ string) (api.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, id)
	return f.record, nil
}

func (f *fakeService) Schema(_ context.Context, name string) ([]byte, error) {
	if name != "worker" {
		return nil, fault.New(fault.NotFound, "there is no unit of this name")
	}
	return []byte(`{"input":{"type":"object"},"output":{"type":"object"}}`), nil
}

func (f *fakeService) Ready(context.Context) error { return f.notReady }

// noted is what a server around the handler hears of a request.
type noted struct {
	httpwire.Notes
	reports []error
	cut     bool
}

func newNotes() *noted {
	n := &noted{}
	n.Report = func(err error, cut bool) { n.reports, n.cut = append(n.reports, err), n.cut || cut }
	return n
}

// ask sends a request to a handler without any server around it.
func ask(ctx context.Context, h http.Handler, n *noted, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(httpwire.WithNotes(ctx, &n.Notes), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (f *fakeService) FullName(_ context.Context, name string) string { return name }
