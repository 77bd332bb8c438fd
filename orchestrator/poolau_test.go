package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestAWaitingUnitGetsItsCall(t *testing.T) {
	t.Parallel()
	w := newReaderFixture(t, func(o *settings) {
		o.Containers.Pool.Size = 2
		settings, one := o.Units["reader"], 1
		settings.Warm = &one
		o.Units["reader"] = settings
	})
	for _, mood := range []string{"good", "bad"} { // the first asks for its card besides
		w.awaitPoolUnit("reader", "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
		files, err := w.service.NewSpool()
		if err != nil {
			t.Fatal(err)
		}
		if err := files.Add("stdin", "text", strings.NewReader("of "+mood), 100); err != nil {
			t.Fatal(err)
		}
		input := fmt.Sprintf(`{"prompt":"tell","env":{"MOOD":%q}}`, mood)
		record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "reader", Input: json.RawMessage(input), Files: files})
		if err != nil {
			t.Fatal(err)
		}
		record = w.await(record.ID)
		w.wantWaited(record)
		want := fmt.Sprintf(`{"model": "weights", "stdin": "of %s", "args": "bash --model-path /models/tiny.gguf --prompt tell", "mood": "MOOD=%s"}`, mood, mood)
		if string(record.Output) != want {
			t.Errorf("%s, want %s", record.Output, want)
		}
	}
	if w.starts("card") != 1 || w.starts("reader") != 2 {
		t.Errorf("%d cards, %d starts", w.starts("card"), w.starts("reader"))
	}
}

func TestAWaitingUnitIsNotLoadedAhead(t *testing.T) {
	t.Parallel()
	w := newReaderFixture(t, func(o *settings) { o.Containers.Pool.Size = 2 })
	for range 2 {
		record, err := w.submitReader("")
		if err != nil {
			t.Fatal(err)
		}
		w.await(record.ID)
	}
	pooled := w.awaitPoolUnit("reader", "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
	if pooled.Waiting[0].Loaded { // its arguments come with the run
		t.Errorf("it is loaded ahead: %+v", pooled)
	}
}
