package models

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// noBooks are those of a run that asked for nothing.
type noBooks struct{}

func (noBooks) List(context.Context, string, int64, int) ([]store.ModelCall, error) {
	return nil, nil
}

func (noBooks) SettleAll(context.Context) error { return nil }

func (noBooks) Spending(context.Context, string) ([]store.ModelSpending, error) { return nil, nil }

func noSpending(context.Context, string, string) (ledger.Amount, error) { return ledger.Amount{}, nil }

func TestTheKeptAnswersOfARunHaveAnEnd(t *testing.T) {
	r := &run.Run{ID: "r", Dir: t.TempDir(), Lineage: run.Lineage{Path: make([]handoff.Step, 1)}}
	answer := cassette.Answer{Status: 200, Chunks: []cassette.Chunk{cassette.Chunk("blue")}}
	answers{joined(t, r, &page{})}.Keep(t.Context(), "one", "digest", answer)
	a := joined(t, r, &page{})
	a.restore(t.Context(), noBooks{}, noSpending)
	kept := func(want int) (bytes int64) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(r.Dir, answersDir, "*"))
		if err != nil || len(files) != want {
			t.Fatalf("kept: %q %v", files, err)
		}
		info, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if known, bytes := a.answered.Load(), kept(1); known == 0 || known != bytes {
		t.Errorf("%d bytes are known to be kept, of %d", known, bytes)
	}
	answers{a}.Keep(t.Context(), "two", "digest", answer)
	kept(2)
	a.answered.Store(maxAnswers)
	answers{a}.Keep(t.Context(), "three", "digest", answer)
	kept(2)
	if _, digest, found := (answers{a}).Find(t.Context(), "one"); !found || digest != "digest" {
		t.Errorf("found %v %q", found, digest)
	}
}
