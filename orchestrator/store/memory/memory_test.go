package memory

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// journal is what both keep runs by.
type journal struct {
	Runs interface {
		Insert(ctx context.Context, r store.Run, key store.Key, events ...store.Event) error
		Save(ctx context.Context, r store.Run, events ...store.Event) error
		Get(ctx context.Context, id string) (store.Run, error)
		List(ctx context.Context, f store.Filter) (store.Page, error)
	}
	Keys interface {
		Get(ctx context.Context, key string) (run, fingerprint string, err error)
	}
}

// On disk or in memory, a journal answers alike.
func TestJournalsAnswerAlike(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) journal{
		"on disk": func(t *testing.T) journal {
			s, err := store.Open(filepath.Join(t.TempDir(), "aod.db"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return journal{s.Runs, s.Keys}
		},
		"in memory": func(*testing.T) journal {
			j := New()
			return journal{j.Runs, j.Keys}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range journalCases {
				t.Run(c.name, func(t *testing.T) {
					j := open(t)
					for _, row := range []store.Run{rowOf("a", "", "a"), rowOf("b", "a", "a"), rowOf("c", "a", "a"), rowOf("d", "", "d"), rowOf("e", "b", "a")} {
						key := store.Key{}
						if row.ID == "b" {
							key = store.Key{Value: "k", Fingerprint: "f"}
						}
						if err := j.Runs.Insert(t.Context(), row, key); err != nil {
							t.Fatal(err)
						}
					}
					c.holds(t, j)
				})
			}
		})
	}
}

var journalCases = []struct {
	name  string
	holds func(t *testing.T, j journal)
}{
	{"a run is as it was inserted", func(t *testing.T, j journal) {
		got, err := j.Runs.Get(t.Context(), "b")
		if err != nil || got.Parent != "a" || got.Root != "a" || got.Unit != "u" || string(got.Input) != `{"of":"b"}` || string(got.Record) != `{"id":"b"}` {
			t.Errorf("%+v, %v", got, err)
		}
	}},
	{"one that isn't there is not found", func(t *testing.T, j journal) {
		if _, err := j.Runs.Get(t.Context(), "x"); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "there is no run x") {
			t.Errorf("%v", err)
		}
	}},
	{"what is saved is there", func(t *testing.T, j journal) {
		row := rowOf("b", "a", "a")
		row.State, row.Record, row.Output = "running", []byte(`{"id":"b","n":1}`), []byte(`{"out":1}`)
		if err := j.Runs.Save(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		got, err := j.Runs.Get(t.Context(), "b")
		if err != nil || got.State != "running" || string(got.Record) != `{"id":"b","n":1}` || string(got.Output) != `{"out":1}` || string(got.Input) != `{"of":"b"}` {
			t.Errorf("%+v, %v", got, err)
		}
	}},
	{"nothing is saved of a run that isn't there", func(t *testing.T, j journal) {
		if err := j.Runs.Save(t.Context(), rowOf("x", "", "x")); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v", err)
		}
		if _, err := j.Runs.Get(t.Context(), "x"); !fault.Is(err, fault.NotFound) {
			t.Errorf("then it is there: %v", err)
		}
	}},
	{"the calls of a run, newest first", func(t *testing.T, j journal) {
		wantRows(t, j, store.Filter{Parent: "a", Limit: 10}, "c", "b")
		wantRows(t, j, store.Filter{Parent: "e", Limit: 10})
	}},
	{"a tree, newest first", func(t *testing.T, j journal) {
		wantRows(t, j, store.Filter{Root: "a", Limit: 10}, "e", "c", "b", "a")
		wantRows(t, j, store.Filter{Root: "d", Limit: 10}, "d")
	}},
	{"the run of a key", func(t *testing.T, j journal) {
		if id, fingerprint, err := j.Keys.Get(t.Context(), "k"); id != "b" || fingerprint != "f" || err != nil {
			t.Errorf("%s %s %v", id, fingerprint, err)
		}
		if _, _, err := j.Keys.Get(t.Context(), "another"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v", err)
		}
		if _, _, err := j.Keys.Get(t.Context(), ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("no key: %v", err)
		}
	}},
	{"a key that is taken takes nothing", func(t *testing.T, j journal) {
		var taken *store.Taken
		err := j.Runs.Insert(t.Context(), rowOf("x", "", "x"), store.Key{Value: "k", Fingerprint: "g"})
		if !errors.As(err, &taken) || taken.Run != "b" || taken.Fingerprint != "f" {
			t.Errorf("%v", err)
		}
		if _, err := j.Runs.Get(t.Context(), "x"); !fault.Is(err, fault.NotFound) {
			t.Errorf("its run is there: %v", err)
		}
	}},
}

func wantRows(t *testing.T, j journal, f store.Filter, want ...string) {
	t.Helper()
	page, err := j.Runs.List(context.WithoutCancel(t.Context()), f)
	var got []string
	for _, row := range page.Runs {
		got = append(got, row.ID)
	}
	if err != nil || !slices.Equal(got, want) || page.Next != "" {
		t.Errorf("%+v: %v, want %v, next %q, %v", f, got, want, page.Next, err)
	}
}

func rowOf(id, parent, root string) store.Run {
	return store.Run{
		ID: id, Unit: "u", Kind: "played", Parent: parent, Root: root, State: "idle", CreatedAt: time.Now().UTC(),
		Input: []byte(`{"of":"` + id + `"}`), Record: []byte(`{"id":"` + id + `"}`), Private: []byte(`{}`),
	}
}
