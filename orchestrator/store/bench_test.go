package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

// among returns a store with n finished runs of two units, one of ten failed.
func among(b *testing.B, n int) *Store {
	b.Helper()
	s := openAt(b, filepath.Join(b.TempDir(), "aod.db"))
	tx, err := s.core.writer.db.Begin()
	must(b, err)
	for i := range n {
		r := ended(aRun(i))
		if i%10 == 0 {
			r.State = "failed"
		}
		r.Metadata = map[string]string{"mode": "DEMO", "user_id": fmt.Sprint(i % 1000)}
		must(b, insert(context.Background(), &transaction{Tx: tx, statements: &statements{}}, r, Key{Value: r.ID}, []Event{event("state"), event("end")}))
	}
	must(b, tx.Commit())
	b.ResetTimer()
	return s
}

func benchmarkList(b *testing.B, n int) {
	s := among(b, n)
	must(b, s.Runs.Insert(b.Context(), aRun(n), Key{}))
	for name, f := range map[string]Filter{
		"all": {}, "unit": {Unit: "hello"}, "states": {Unit: "hello", States: []string{"failed", "timeout", "running"}}, "unfinished": {Unfinished: true},
		"metadata": {Metadata: map[string]string{"mode": "DEMO"}}, "metadata of few": {Metadata: map[string]string{"mode": "DEMO", "user_id": "7"}},
		"metadata of none": {Metadata: map[string]string{"mode": "DEMO"}, Unit: "nothing"},
		"metadata of all":  {Metadata: map[string]string{"mode": "DEMO"}, Unit: "hello", States: []string{"completed", "failed"}},
		"rare state":       {States: []string{"running"}}, "of no maker": {MadeBy: "nobody"}, "of no team": {Owned: Owned{Teams: []string{"nobody"}}}, "of the default team": {Owned: Owned{Teams: []string{"default"}}},
		"few of a unit": {Root: "none", Unit: "hello", States: []string{"completed", "failed"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := s.Runs.List(b.Context(), f)
				must(b, err)
			}
		})
	}
	b.Run("recovery", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Runs.Unfinished(b.Context())
			must(b, err)
		}
	})
}

func BenchmarkListAmong100(b *testing.B)  { benchmarkList(b, 100) }
func BenchmarkListAmong100k(b *testing.B) { benchmarkList(b, 100_000) }

func benchmarkInsert(b *testing.B, n int) {
	s := among(b, n)
	for b.Loop() {
		r := aRun(n)
		must(b, s.Runs.Insert(b.Context(), r, Key{Value: r.ID}, event("state")))
		must(b, s.Runs.Save(b.Context(), ended(r), event("end")))
	}
}

// Each is a submit and its end, the disk reached twice.
func BenchmarkInsertAmong0(b *testing.B)    { benchmarkInsert(b, 0) }
func BenchmarkInsertAmong100k(b *testing.B) { benchmarkInsert(b, 100_000) }

// BenchmarkInsertTogether is the same by 64 at once, which share the disk.
func BenchmarkInsertTogether(b *testing.B) {
	s := among(b, 0)
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r := aRun(1)
			must(b, s.Runs.Insert(b.Context(), r, Key{Value: r.ID}, event("state")))
			must(b, s.Runs.Save(b.Context(), ended(r), event("end")))
		}
	})
}

// benchmarkChanged reads a first page, which counts, and the one behind it.
func benchmarkChanged(b *testing.B, n int) {
	s := among(b, n)
	for name, f := range map[string]ChangedFilter{
		"all": {}, "unit": {Units: []string{"hello"}}, "states": {States: []string{"failed", "running"}}, "context": {Context: "none"},
		"units and states": {Units: []string{"hello", "other"}, States: []string{"completed", "running"}}, "maker": {Owned: Owned{By: "nobody"}}, "team": {Owned: Owned{Teams: []string{"nobody"}}},
	} {
		f.Known = knownStates
		first, err := s.Runs.Changed(b.Context(), f)
		must(b, err)
		b.Run(name+" first", func(b *testing.B) {
			for b.Loop() {
				_, err := s.Runs.Changed(b.Context(), f)
				must(b, err)
			}
		})
		if f.Cursor = first.Next; f.Cursor == "" {
			continue
		}
		b.Run(name+" next", func(b *testing.B) {
			for b.Loop() {
				_, err := s.Runs.Changed(b.Context(), f)
				must(b, err)
			}
		})
	}
}

func BenchmarkChangedAmong1k(b *testing.B)   { benchmarkChanged(b, 1000) }
func BenchmarkChangedAmong100k(b *testing.B) { benchmarkChanged(b, 100_000) }
