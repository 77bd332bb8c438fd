package orchestrator

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// spoil changes what is stored of a run, while no service has it.
func (w *fixture) spoil(id string, change func(*store.Run)) {
	w.t.Helper()
	s, err := store.Open(w.service.path(layout.Database), store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	row, err := s.Runs.Get(trusted.Context(w.t), id)
	if err != nil {
		w.t.Fatal(err)
	}
	change(&row)
	if err := s.Runs.Save(trusted.Context(w.t), row); err != nil {
		w.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func TestARunThatCannotBeReadStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*store.Run){
		"its record isn't JSON":   func(r *store.Run) { r.Record = []byte("\x00garbage") },
		"its record is empty":     func(r *store.Run) { r.Record = []byte("{}") },
		"its record is another's": func(r *store.Run) { r.Record = []byte(strings.ReplaceAll(string(r.Record), r.ID, "other")) },
		"its private part is cut": func(r *store.Run) { r.Private = r.Private[:len(r.Private)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			done := w.await(w.submit(orders{Mark: "done"})).ID
			live := w.submit(orders{Mark: "live", Until: "go"})
			other := w.submit(orders{Mark: "other", Until: "go"})
			w.until(live, running)
			w.until(other, running)
			w.stop()
			w.spoil(live, change)
			w.spoil(done, change)
			w.start()
			record := w.await(live)
			if record.State != api.Failed || record.Outcome != api.SystemError || record.Error == nil || !strings.Contains(record.Error.Message, "can't be read") {
				t.Errorf("it ended as %s", show(record))
			}
			keepsSchema(t, record)
			w.open("go")
			if got := w.await(other); got.Outcome != api.Success {
				t.Errorf("another run: %s", show(got))
			}
			page, err := w.service.Runs.List(trusted.Context(t), api.Filter{})
			if err != nil || len(page.Runs) != 3 {
				t.Fatalf("the list: %+v, %v", page.Runs, err)
			}
			for _, listed := range page.Runs {
				if listed.ID == "" || listed.Unit != "worker" || listed.Outcome == "" {
					t.Errorf("it is listed as %+v", listed)
				}
			}
			shown, err := w.service.Runs.Get(trusted.Context(t), done)
			if err != nil {
				t.Fatal(err)
			}
			keepsSchema(t, shown)
			if broken := !strings.Contains(name, "private"); broken == (shown.Outcome == api.Success) {
				t.Errorf("a finished one is shown as %s", show(shown))
			}
		})
	}
}
