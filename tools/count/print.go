package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

const longest = 25 // functions that are named

func (t *tally) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, t.String()); err != nil {
		return err
	}
	return w.Flush()
}

// String returns the tables, with tabs between their columns.
func (t *tally) String() string {
	w := &strings.Builder{}
	total := t.printPackages(w)
	slices.SortStableFunc(t.functions, func(a, b function) int { return cmp.Compare(b.lines, a.lines) })
	sizes := t.functionSizes()
	lines := make([]int, len(t.files))
	for i, f := range t.files {
		lines[i] = f.lines
	}
	fmt.Fprintf(w, "\nproduct code\t%d lines, tests %d (%s)\n", total.prod, total.test, ratio(total))
	fmt.Fprintf(w, "files\t%d, %s\n", len(t.files), spread(lines))
	fmt.Fprintf(w, "functions\t%d, %s\n", len(sizes), spread(sizes))
	fmt.Fprintf(w, "interfaces\t%d, %s\n", len(t.interfaces), spread(t.interfaces))
	fmt.Fprintf(w, "comments\t%d %% of lines\n", percent(t.comments, total.prod))
	fmt.Fprintf(w, "exported functions\t%d, %d %% documented\n", t.exported, percent(t.documented, t.exported))
	fmt.Fprintf(w, "\nlongest functions\tlines\n")
	for _, f := range t.functions[:min(longest, len(t.functions))] {
		fmt.Fprintf(w, "%s\t%d\n", f.name, f.lines)
	}
	return w.String()
}

func (t *tally) printPackages(w *strings.Builder) pkg {
	var total pkg
	fmt.Fprintf(w, "package\tproduct\ttests\tratio\n")
	for _, dir := range slices.Sorted(maps.Keys(t.packages)) {
		p := t.packages[dir]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", dir, p.prod, p.test, ratio(*p))
		total.prod += p.prod
		total.test += p.test
	}
	return total
}

func ratio(p pkg) string {
	if p.prod == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(p.test)/float64(p.prod))
}

func percent(part, whole int) int { return (200*part + whole) / max(2*whole, 1) }

// spread tells the median, the 90th and 99th percentile and the largest of some numbers.
func spread(numbers []int) string {
	if len(numbers) == 0 {
		return "none"
	}
	at := func(p int) int { return percentile(numbers, p) }
	return fmt.Sprintf("median %d, p90 %d, p99 %d, max %d", at(50), at(90), at(99), at(100))
}

// percentile returns 0 of no numbers.
func percentile(numbers []int, p int) int {
	if len(numbers) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(numbers))[(len(numbers)-1)*p/100]
}
