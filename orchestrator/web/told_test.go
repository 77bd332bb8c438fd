package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

func TestAWaitHasAReason(t *testing.T) {
	t.Parallel()
	stats := func(busy, queued int, running int64, memory int64) api.Stats {
		return api.Stats{
			Slots: 4, Busy: busy, Memory: api.MemoryStats{LimitBytes: memory},
			Units: []api.UnitStats{{Unit: "a", Queued: 9}, {Unit: "u", Queued: queued, Live: map[api.Status]int64{"starting": 1, "running": running - 1}}},
		}
	}
	for want, c := range map[string]struct {
		run   api.Summary
		most  int64
		stats api.Stats
	}{
		"All 4 slots of the server are taken":                      {api.Summary{Unit: "u"}, 0, stats(4, 1, 4, 0)},
		"Its unit runs 2 at a time, and as many run":               {api.Summary{Unit: "u"}, 2, stats(4, 1, 2, 0)},
		"Not enough memory is free, or it is its turn in a moment": {api.Summary{Unit: "u"}, 2, stats(1, 1, 1, 9)},
		"An earlier turn of its session goes on":                   {api.Summary{Unit: "u", Kind: "agent"}, 2, stats(1, 0, 1, 9)},
		"An attempt failed: the next one comes after a pause":      {api.Summary{Unit: "u", Kind: "agent", Retries: 1}, 2, stats(1, 0, 1, 9)},
		"It is its turn in a moment":                               {api.Summary{Unit: "other"}, 0, stats(1, 0, 1, 9)},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := whyWaits(c.run, c.most, c.stats); got != want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestADocumentIsTakenApart(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][3]string{
		`{"message":"a\u001b[31mb\nc"}`:                          {"ab\nc", "", ""},
		`{"message":"a","files":["x","y"],"n":1.50}`:             {"a", "x,y", "{\n  \"n\": 1.50\n}"},
		`{"message":{"no":"text"},"files":7}`:                    {"", "", "{\n  \"files\": 7,\n  \"message\": {\n    \"no\": \"text\"\n  }\n}"},
		`null`:                                                   {"", "", ""},
		`{"message":"` + strings.Repeat("é", prettyBytes) + `"}`: {strings.Repeat("é", 10_000) + "… (and 45536 bytes more)\n… (64.0 KiB more: see the run)", "", ""},
	} {
		p := partsOf([]byte(raw))
		got := [3]string{p.text("message"), strings.Join(p.files([]fileField{{"files", "", true}}), ","), p.rest()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.60s: %s", raw, diff)
		}
	}
}
