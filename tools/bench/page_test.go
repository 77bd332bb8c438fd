package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestThePageShowsWhatItIsGiven(t *testing.T) {
	p := &page{pairs: 7, facts: []fact{{"kernel", "6.1"}}}
	p.add(memory, part{title: "Server", table: table{head: []string{"MiB", "resident"}, rows: [][]string{{"idle", "29.0"}}}})
	p.add(latency, part{
		title: "A job",
		table: table{head: []string{"milliseconds", "p50"}, rows: [][]string{{"ours", "12.0"}, {"theirs", "300"}}},
		notes: []string{"7 turns."},
		goals: []goal{atMost("ours, in ms", 12, 10), atMost("ours, as a part of theirs", 0.04, 0.05)},
	})
	text := p.String()
	wanted := []string{ // in this order
		"`-pairs 7`", "| kernel | 6.1 |",
		"| A job: ours, in ms | ≤ 10 | 12.0 | **missed** |", "| A job: ours, as a part of theirs | ≤ 0.05 | 0.04 | met |",
		"## Latency", "### A job", "| milliseconds | p50 |\n|---|---|\n| ours | 12.0 |\n| theirs | 300 |", "7 turns.",
		"## Memory", "### Server", "| idle | 29.0 |",
	}
	rest := text
	for _, want := range wanted {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("there is no %q, or not in its place:\n%s", want, text)
		}
		rest = after
	}
	t.Run("and no chapter without a row", func(t *testing.T) {
		if strings.Contains(text, "## "+throughput) {
			t.Error(text)
		}
	})
}

func TestThePageOfTheGuideHasAllRows(t *testing.T) {
	raw, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	has := func(heading string) {
		if !slices.Contains(lines, heading) {
			t.Errorf("there is no %q: `make bench` writes it", heading)
		}
	}
	has("## The machine")
	has("## Targets")
	for _, chapter := range chapters {
		has("## " + chapter.title)
	}
	for _, m := range makers {
		has("### " + m.title)
	}
}

func TestEachRowHasAChapterOfThePage(t *testing.T) {
	for _, m := range makers {
		known := false
		for _, chapter := range chapters {
			known = known || chapter.title == m.chapter
		}
		if !known {
			t.Errorf("%s is of the chapter %q, which the page hasn't", m.name, m.chapter)
		}
	}
}
