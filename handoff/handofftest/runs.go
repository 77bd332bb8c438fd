// Package handofftest has what tests need of runs that are called: an orchestrator that is made up.
//
// Its Go API may change with every release: see docs/stability.md.
package handofftest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
)

// Callee is the contract of a unit that takes numbers and files.
const Callee = `{"input":{"type":"object","additionalProperties":false,"properties":{
	"n":{"type":"int"},"f":{"type":"string","format":"file_path"},
	"o":{"type":"dict","properties":{"f":{"type":"string","format":"file_path"}}},
	"fs":{"type":"list","items":{"type":"string","format":"file_path"}}}},
	"output":{"type":"object"}}`

// ID returns the id of a run.
func ID(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// Runs ends every run at once with what Outcome says, unless Hold is set.
type Runs struct {
	T        testing.TB
	Mu       sync.Mutex
	Units    map[string]*handoff.Unit
	Calls    []handoff.Call
	Copied   []map[string]string // the files of each call
	Results  map[string]handoff.Result
	ByKey    map[string]string
	Refuse   error
	Unlike   error             // of Recall
	Recalled map[string]string // by key: runs of earlier attempts
	Broken   error             // of Unit
	Outcome  func(id string, call handoff.Call) handoff.Result
	Hold     chan struct{} // runs end when it is closed
	Cancels  []string
	Reports  []handoff.Progress

	Said      []api.HeardMessage
	News      chan struct{} // closed when there is another message; nil: none comes
	Artifacts []handoff.Artifact
	ShownFile []string // the contents of their files

	Questions []handoff.Question
	Answer    handoff.Answer // to each of them
	Words     string         // of each failed run
}

// NewRuns returns runs that know no unit.
func NewRuns(t testing.TB) *Runs {
	completed := func(id string, _ handoff.Call) handoff.Result {
		return handoff.Result{
			ID: id, Ended: true, State: "completed", Success: true, Output: json.RawMessage(`{"ok":true}`),
		}
	}
	return &Runs{
		T: t, Units: map[string]*handoff.Unit{}, Results: map[string]handoff.Result{}, ByKey: map[string]string{},
		Outcome: completed,
	}
}

// Add adds a unit with a contract.
func (f *Runs) Add(name, schema string) *handoff.Unit {
	c, found := contract.Parse([]byte(schema))
	if c == nil {
		f.T.Fatal(found)
	}
	f.Units[name] = &handoff.Unit{Name: name, Description: "The " + name + ".", Contract: c, Schema: []byte(schema)}
	return f.Units[name]
}

// Unit implements handoff.Runs.
func (f *Runs) Unit(_ context.Context, name string) (*handoff.Unit, error) {
	if u := f.Units[name]; u != nil || f.Broken != nil {
		return u, f.Broken
	}
	return nil, fault.New(fault.NotFound, "there is no unit %q", name).WithHint("GET /capsules lists them")
}

// Start implements handoff.Runs.
func (f *Runs) Start(ctx context.Context, call handoff.Call) (string, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if f.Refuse != nil {
		return "", f.Refuse
	}
	if id := f.ByKey[call.Key]; id != "" {
		return id, nil
	}
	id := ID(100 + len(f.Calls))
	f.Calls, f.Copied = append(f.Calls, call), append(f.Copied, f.copy(call))
	f.Results[id] = f.Outcome(id, call)
	if call.Key != "" {
		f.ByKey[call.Key] = id
	}
	return id, nil
}

// Recall implements handoff.Runs.
func (f *Runs) Recall(_ context.Context, call handoff.Call) (string, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Recalled[call.Key], f.Unlike
}

func (f *Runs) copy(call handoff.Call) map[string]string {
	copied := map[string]string{}
	for _, file := range call.Files {
		path := filepath.Join(f.T.TempDir(), "copy")
		out, err := os.Create(path)
		must(f.T, err)
		_, err = file.CopyTo(out)
		must(f.T, err)
		must(f.T, out.Close())
		content, err := os.ReadFile(path)
		must(f.T, err)
		copied[file.Name] = string(content)
	}
	return copied
}

// Await implements handoff.Runs.
func (f *Runs) Await(ctx context.Context, id string) (handoff.Result, error) {
	f.Mu.Lock()
	result, ok := f.Results[id]
	f.Mu.Unlock()
	if !ok {
		return handoff.Result{}, fault.New(fault.NotFound, "there is no handoff of this id")
	}
	if f.Hold == nil {
		return result, nil
	}
	select {
	case <-f.Hold:
		return result, nil
	default:
	}
	select {
	case <-f.Hold:
		return result, nil
	case <-ctx.Done():
		return handoff.Result{ID: id, State: "running"}, nil
	}
}

// Cancel implements handoff.Runs.
func (f *Runs) Cancel(_ context.Context, id, _ string) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Cancels = append(f.Cancels, id)
	return nil
}

// LastWords implements handoff.Runs.
func (f *Runs) LastWords(context.Context, string) string { return f.Words }

// Progress implements handoff.Runs.
func (f *Runs) Progress(p handoff.Progress) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Reports = append(f.Reports, p)
}

// Ask implements handoff.Runs.
func (f *Runs) Ask(_ context.Context, q handoff.Question) (handoff.Answer, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Questions = append(f.Questions, q)
	return f.Answer, nil
}

// Messages returns what is said after a message, when there is some.
func (f *Runs) Messages(ctx context.Context, after int64) ([]api.HeardMessage, error) {
	for {
		f.Mu.Lock()
		var found []api.HeardMessage
		for _, m := range f.Said {
			if m.N > after {
				found = append(found, m)
			}
		}
		news := f.News
		f.Mu.Unlock()
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

// Artifact takes what is shown.
func (f *Runs) Artifact(_ context.Context, a handoff.Artifact) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if a.Open != nil {
		file, err := a.Open()
		if err != nil {
			return err
		}
		defer file.Close()
		for _, content := range f.copy(handoff.Call{Files: []handoff.File{file}}) {
			f.ShownFile = append(f.ShownFile, content)
		}
	}
	a.Open = nil
	f.Artifacts = append(f.Artifacts, a)
	return f.Refuse
}

// Told implements handoff.Runs, and yields nothing.
func (f *Runs) Told(context.Context, string) iter.Seq[handoff.Progress] {
	return func(func(handoff.Progress) bool) {}
}

// Started returns how many runs there are.
func (f *Runs) Started() int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return len(f.Calls)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
