package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// The bounds of what `make count` measures.
const (
	mostFiles       = 5 // that a type's methods may lie in
	mostSpread      = 4000
	mostMethods     = 40
	mostLargeTypes  = 3
	mostTypeLines   = 900
	mostFileLines   = 600
	fewestFileLines = 40
	mostSmallFiles  = 10 // percent
	mostColumns     = 120
	mostProduct     = 178_000 // docs/adr/0011-two-bounds-of-size-moved.md, as is mostUsual
	mostFolders     = 15
	mostFunction    = 66
	mostUsual       = 32 // lines of the 99th percentile of functions
	mostJobFields   = 20

	mostNamed = 40 // offenders of a figure
)

// figure is something that has a bound, and what puts it above that.
type figure struct {
	name       string
	now, bound int
	offenders  []string
}

// figures returns all that have a bound, in a tree whose files under version control and whose kernel's imports
// are these.
func (t *tally) figures(tracked, imports []string) []figure {
	folders, features := foldersOf(tracked), featuresIn(imports)
	return slices.Concat(t.typeFigures(), t.fileFigures(), t.functionFigures(), []figure{
		{"folders of the root", len(folders), mostFolders, folders},
		{"packages of features that the kernel imports", len(features), 0, features},
		t.jobFigure(),
	})
}

func (t *tally) typeFigures() []figure {
	spread := figure{name: fmt.Sprintf("method lines of types in more than %d files", mostFiles), bound: mostSpread}
	large := figure{name: fmt.Sprintf("types with more than %d methods", mostMethods), bound: mostLargeTypes}
	long := figure{name: fmt.Sprintf("types of more than %d method lines", mostTypeLines)}
	for _, of := range t.declaredTypes() {
		if len(of.files) > mostFiles {
			spread.now += of.lines
			spread.offenders = append(spread.offenders,
				fmt.Sprintf("%s\t%d files, %d methods, %d lines", of, len(of.files), of.methods, of.lines))
		}
		if of.methods > mostMethods {
			large.add(fmt.Sprintf("%s\t%d methods", of, of.methods))
		}
		if of.lines+of.functions > mostTypeLines {
			long.add(fmt.Sprintf("%s\t%d lines, %d of them in functions", of, of.lines+of.functions, of.functions))
		}
	}
	return []figure{spread, large, long}
}

func (f *figure) add(offender string) {
	f.now++
	f.offenders = append(f.offenders, offender)
}

func (t *tally) fileFigures() []figure {
	long := figure{name: fmt.Sprintf("files of more than %d lines", mostFileLines)}
	small := figure{name: fmt.Sprintf("percent of files under %d lines", fewestFileLines), bound: mostSmallFiles}
	product := figure{name: "product lines", bound: mostProduct}
	for _, f := range t.files {
		product.now += f.lines
		if f.lines > mostFileLines {
			long.add(fmt.Sprintf("%s\t%d lines", f.name, f.lines))
		}
		if f.lines < fewestFileLines {
			small.offenders = append(small.offenders, fmt.Sprintf("%s\t%d lines", f.name, f.lines))
		}
	}
	files := max(len(t.files), 1)
	small.now = (100*len(small.offenders) + files - 1) / files
	wide := figure{fmt.Sprintf("lines over %d columns", mostColumns), len(t.wide), 0, t.wide}
	return []figure{long, small, wide, product}
}

func (t *tally) functionFigures() []figure {
	longest := figure{name: "lines of the longest function", bound: mostFunction}
	usual := figure{name: "lines of the 99th percentile of functions", bound: mostUsual}
	for _, f := range t.functions {
		longest.now = max(longest.now, f.lines)
		if f.lines > mostFunction {
			longest.offenders = append(longest.offenders, fmt.Sprintf("%s\t%d lines", f.name, f.lines))
		}
		if f.lines > mostUsual {
			usual.offenders = append(usual.offenders, fmt.Sprintf("%s\t%d lines", f.name, f.lines))
		}
	}
	usual.now = percentile(t.functionSizes(), 99)
	return []figure{longest, usual}
}

// jobFigure counts the fields of the kernel's struct for a run. A tree without that has none, and is above the bound.
func (t *tally) jobFigure() figure {
	f := figure{name: "fields of a job", now: mostJobFields + 1, bound: mostJobFields}
	job := t.types[kernel+".job"]
	if job == nil || job.declared == nil {
		f.offenders = []string{kernel + " has no struct job"}
		return f
	}
	f.now = t.fields(job, map[*typ]bool{})
	f.offenders = []string{fmt.Sprintf("%s\t%d fields", job, f.now)}
	return f
}

var errAbove = errors.New("above a bound")

// check prints the figures beside their bounds, and what is above each; it fails when something is.
func check(out io.Writer, figures []figure) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "\nfigure\tnow\tbound\n")
	for _, f := range figures {
		fmt.Fprintf(text, "%s\t%d\t%d\n", f.name, f.now, f.bound)
	}
	var above []string
	for _, f := range figures {
		if f.now > f.bound {
			above = append(above, fmt.Sprintf("%s: %d of %d", f.name, f.now, f.bound))
			f.printOffenders(text)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	if err := w.Flush(); err != nil || above == nil {
		return err
	}
	return fmt.Errorf("%w: %s", errAbove, strings.Join(above, "; "))
}

// printOffenders names what puts a figure above its bound.
func (f figure) printOffenders(w *strings.Builder) {
	fmt.Fprintf(w, "\n%s: %d, at most %d\n", f.name, f.now, f.bound)
	for _, o := range f.offenders[:min(mostNamed, len(f.offenders))] {
		fmt.Fprintf(w, "%s\n", o)
	}
	if more := len(f.offenders) - mostNamed; more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
