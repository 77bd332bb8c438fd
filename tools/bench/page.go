package main

import (
	"fmt"
	"slices"
	"strings"
)

// The chapters of the page.
const (
	latency    = "Latency"
	throughput = "Throughput"
	pools      = "Refill and bursts"
	memory     = "Memory"
	models     = "Models"
)

// chapters are in their order, with what there is to know of all figures in one.
var chapters = []struct{ title, text string }{
	{latency, `From asking to having the checked result. "API" is a request to a server on this machine over an open connection;
"cold" starts a container for the run, "warm" takes one that waited, or is a miss. ` + "`runc run`" + ` has the same root file system and
program, with a network namespace and without an engine, a contract or a limit. The ways of a table take turns; the
first turn isn't counted. With fewer than 100 turns, p99 is the slowest.`},
	{throughput, `Of the small Python job.`},
	{pools, `How fast containers come to wait, and what happens when more calls come at once. Nothing is started ahead of runs
while one waits in the queue.`},
	{memory, `Resident is what ps shows; anonymous memory can't be had back by dropping caches; charged is all that the kernel
counts for the container's cgroup, with the page cache.`},
	{models, `Requests for a model that answers at once, a double on this machine. "At its socket" is a client of this machine at
the socket that a run's sandbox has, with the reservation of each request on the disk.`},
}

// page is docs/performance.md.
type page struct {
	facts []fact
	pairs int
	parts map[string][]part // by chapter
}

// fact is a line of the table of the machine.
type fact struct{ name, value string }

// part is one table with what belongs to it.
type part struct {
	title string
	table table
	notes []string
	goals []goal
}

type table struct {
	head []string
	rows [][]string
}

// goal is a target beside its figure.
type goal struct {
	what      string
	got, most float64
}

func atMost(what string, got, most float64) goal { return goal{what: what, got: got, most: most} }

func (g goal) met() bool { return g.got <= g.most }

func (p *page) add(chapter string, made part) {
	if p.parts == nil {
		p.parts = map[string][]part{}
	}
	p.parts[chapter] = append(p.parts[chapter], made)
}

// String is the page in Markdown.
func (p *page) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, `# Performance

Written by `+"`make bench`"+` on the machine below, with %s; other machines have other figures, their ratios differ
less. To repeat some rows, after `+"`make base`"+` and without touching this page:

%s
go build -C tools/bench -o ../../bin/bench . && bin/bench -rows small,burst -pairs 10
%s

The rows are %s.
%s writes a page of them to a file.

## The machine

`, code(fmt.Sprintf("-pairs %d", p.pairs)), "```sh", "```", codeLines(names()), code("-write FILE"))
	text.WriteString(table{head: []string{"", ""}, rows: p.factRows()}.String())
	text.WriteString("\n## Targets\n\n")
	text.WriteString(table{head: []string{"", "target", "measured", ""}, rows: p.goalRows()}.String())
	for _, chapter := range chapters {
		parts := p.parts[chapter.title]
		if len(parts) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n## %s\n\n%s\n", chapter.title, chapter.text)
		for _, made := range parts {
			text.WriteString(made.String())
		}
	}
	return text.String()
}

// code is a list of code spans.
func code(words ...string) string { return "`" + strings.Join(words, "`, `") + "`" }

// codeLines is a list of code spans with eight in a line.
func codeLines(words []string) string {
	var lines []string
	for few := range slices.Chunk(words, 8) {
		lines = append(lines, code(few...))
	}
	return strings.Join(lines, ",\n")
}

func (p *page) factRows() (rows [][]string) {
	for _, f := range p.facts {
		rows = append(rows, []string{f.name, f.value})
	}
	return rows
}

func (p *page) goalRows() (rows [][]string) {
	for _, chapter := range chapters {
		for _, made := range p.parts[chapter.title] {
			for _, g := range made.goals {
				rows = append(rows, []string{
					made.title + ": " + g.what, "≤ " + fmt.Sprint(g.most), digits(g.got),
					verdict(g),
				})
			}
		}
	}
	return rows
}

func verdict(g goal) string {
	if g.met() {
		return "met"
	}
	return "**missed**"
}

func (p part) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n### %s\n\n%s", p.title, p.table)
	for _, note := range p.notes {
		fmt.Fprintf(&text, "\n%s\n", note)
	}
	return text.String()
}

func (t table) String() string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	text.WriteString(strings.Repeat("|---", len(t.head)) + "|\n")
	for _, row := range t.rows {
		line(row)
	}
	return text.String()
}
