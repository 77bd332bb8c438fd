package flow

import (
	"slices"
	"testing"
)

func benchmarked(b *testing.B, text string, input map[string]any) {
	f := flowOf(b, text)
	for b.Loop() {
		h := &fakeHost{}
		if ended, err := f.Walk(b.Context(), input, nil, h); err != nil || ended.Failure != nil {
			b.Fatal(err, ended.Failure)
		}
	}
}

func BenchmarkDecidingNodes(b *testing.B) {
	benchmarked(b, `{start: a, max_steps: 1000, nodes: {a: {set: {n: "${{ (state.n ?? 0) + 1 }}"}, action: '${{ visits.a < 1000 ? "again" : "on" }}', next: {again: a, on: end}}}}`, nil)
}

func BenchmarkMapOf1000(b *testing.B) {
	benchmarked(b, `{start: a, nodes: {a: {map: "${{ input.xs }}", run: u, with: {x: "${{ item }}"}, collect: "${{ out.x }}"}}}`, map[string]any{"xs": upTo(1000)})
}

func BenchmarkResumeOf1000Steps(b *testing.B) {
	text := `{start: a, max_steps: 1000, nodes: {a: {set: {n: "${{ (state.n ?? 0) + 1 }}"}, action: '${{ visits.a < 1000 ? "again" : "on" }}', next: {again: a, on: end}}}}`
	h := &fakeHost{}
	walked(b, text, nil, h)
	f := flowOf(b, text)
	for b.Loop() {
		if _, err := f.Walk(b.Context(), nil, slices.Clone(h.steps), h); err != nil {
			b.Fatal(err)
		}
	}
}
