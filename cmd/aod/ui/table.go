package ui

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// NewTable begins a table with its titles.
func NewTable(w io.Writer, titles ...string) *tabwriter.Writer {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	Row(table, titles...)
	return table
}

// Row adds a line of cells. An empty cell is shown as "-", so that a program can tell the
// columns apart.
func Row(table *tabwriter.Writer, cells ...string) {
	for i, c := range cells {
		if cells[i] = Cell(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) // Flush returns the error
}

// Cell keeps a server's text on one line and in its column.
func Cell(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Printable(text))
}

// Page is what a person sees of one thing: a line for each of its fields.
type Page struct{ Out *Output }

// Field prints a line, or none if the text is empty.
func (p Page) Field(name, text string) {
	if text != "" {
		p.Out.Line("%s %s", p.Out.Style(Dim, fmt.Sprintf("%-9s", name)), Cell(text))
	}
}
