package handoff

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// fakeRuns ends every run at once with what outcome says, unless hold is set.
type fakeRuns struct {
	t        testing.TB
	mu       sync.Mutex
	units    map[string]*Unit
	calls    []Call
	copied   []map[string]string // the files of each call
	results  map[string]Result
	byKey    map[string]string
	refuse   error
	unlike   error             // of Recall
	recalled map[string]string // by key: runs of earlier attempts
	broken   error             // of Unit
	outcome  func(id string, call Call) Result
	hold     chan struct{} // runs end when it is closed
	cancels  []string
	told     []Progress

	messages  []api.HeardMessage
	news      chan struct{} // closed when there is another message; nil: none comes
	artifacts []Artifact
	shownFile []string // the contents of their files

	questions []Question
	answer    Answer // to each of them
	words     string // of each failed run
}

func newFakeRuns(t testing.TB) *fakeRuns {
	return &fakeRuns{t: t, units: map[string]*Unit{}, results: map[string]Result{}, byKey: map[string]string{}, outcome: func(id string, _ Call) Result {
		return Result{ID: id, Ended: true, State: "completed", Success: true, Output: json.RawMessage(`{"ok":true}`)}
	}}
}

func (f *fakeRuns) add(name, schema string) *Unit {
	c, found := contract.Parse([]byte(schema))
	if c == nil {
		f.t.Fatal(found)
	}
	f.units[name] = &Unit{Name: name, Description: "The " + name + ".", Contract: c, Schema: []byte(schema)}
	return f.units[name]
}

func (f *fakeRuns) Unit(_ context.Context, name string) (*Unit, error) {
	if u := f.units[name]; u != nil || f.broken != nil {
		return u, f.broken
	}
	return nil, fault.New(fault.NotFound, "there is no unit %q", name).WithHint("GET /capsules lists them")
}

func (f *fakeRuns) Start(ctx context.Context, call Call) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if f.refuse != nil {
		return "", f.refuse
	}
	if id := f.byKey[call.Key]; id != "" {
		return id, nil
	}
	id := idOf(100 + len(f.calls))
	f.calls, f.copied = append(f.calls, call), append(f.copied, f.copy(call))
	f.results[id] = f.outcome(id, call)
	if call.Key != "" {
		f.byKey[call.Key] = id
	}
	return id, nil
}

func (f *fakeRuns) Recall(_ context.Context, call Call) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recalled[call.Key], f.unlike
}

func (f *fakeRuns) copy(call Call) map[string]string {
	copied := map[string]string{}
	for _, file := range call.Files {
		path := filepath.Join(f.t.TempDir(), "copy")
		out, err := os.Create(path)
		must(f.t, err)
		_, err = file.CopyTo(out)
		must(f.t, err)
		must(f.t, out.Close())
		copied[file.Name] = read(f.t, path)
	}
	return copied
}

func (f *fakeRuns) Await(ctx context.Context, id string) (Result, error) {
	f.mu.Lock()
	result, ok := f.results[id]
	f.mu.Unlock()
	if !ok {
		return Result{}, fault.New(fault.NotFound, "there is no handoff of this id")
	}
	if f.hold == nil {
		return result, nil
	}
	select {
	case <-f.hold:
		return result, nil
	default:
	}
	select {
	case <-f.hold:
		return result, nil
	case <-ctx.Done():
		return Result{ID: id, State: "running"}, nil
	}
}

func (f *fakeRuns) Cancel(_ context.Context, id, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancels = append(f.cancels, id)
	return nil
}

func (f *fakeRuns) LastWords(context.Context, string) string { return f.words }

func (f *fakeRuns) Progress(p Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, p)
}

func (f *fakeRuns) Ask(_ context.Context, q Question) (Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.questions = append(f.questions, q)
	return f.answer, nil
}

func (f *fakeRuns) Messages(ctx context.Context, after int64) ([]api.HeardMessage, error) {
	for {
		f.mu.Lock()
		var found []api.HeardMessage
		for _, m := range f.messages {
			if m.N > after {
				found = append(found, m)
			}
		}
		news := f.news
		f.mu.Unlock()
		if len(found) > 0 {
			return found, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (f *fakeRuns) Artifact(_ context.Context, a Artifact) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Open != nil {
		file, err := a.Open()
		if err != nil {
			return err
		}
		defer file.close()
		for _, content := range f.copy(Call{Files: []File{file}}) {
			f.shownFile = append(f.shownFile, content)
		}
	}
	a.Open = nil
	f.artifacts = append(f.artifacts, a)
	return f.refuse
}

func (f *fakeRuns) Told(context.Context, string) iter.Seq[Progress] {
	return func(func(Progress) bool) {}
}

func (f *fakeRuns) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// growing has something happen between the opening and the copying of files.
type growing struct {
	*fakeRuns
	grow func()
}

func (g growing) Start(ctx context.Context, call Call) (string, error) {
	g.grow()
	return g.fakeRuns.Start(ctx, call)
}
