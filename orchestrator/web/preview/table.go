package preview

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/terminal"
)

const (
	maxRows    = 200
	maxColumns = 50
	maxCell    = 300 // bytes
)

// Table is the beginning of a CSV or TSV file.
type Table struct {
	Head    []string   // nil: its first row is of numbers like the others
	Rows    [][]string // at most 200, each as long as the widest: at most 50
	Numbers []bool     // by column: it has nothing but numbers

	AllRows, AllColumns int
	More                bool // and there are more rows behind what was read
}

// Counts tells how much of the table is shown: "8 of 12 rows, 5 columns".
func (t *Table) Counts() string {
	rows := counted(len(t.Rows), t.AllRows, "row")
	if t.More {
		rows = "the first " + counted(len(t.Rows), len(t.Rows), "row")
	}
	return rows + ", " + counted(len(t.Numbers), t.AllColumns, "column")
}

func counted(shown, all int, of string) string {
	text := fmt.Sprint(all, " ", of)
	if all != 1 {
		text += "s"
	}
	if shown < all {
		return fmt.Sprint(shown, " of ", text)
	}
	return text
}

// Top is the table with no more than its first rows.
func (t *Table) Top(rows int) *Table {
	top := *t
	top.Rows = t.Rows[:min(rows, len(t.Rows))]
	return &top
}

// sheet is the preview of a table, or of its text where it can't be read.
func sheet(text string, whole bool) Preview {
	table, err := readTable(text, whole)
	if err != nil {
		return Preview{Kind: Text, Text: text, Note: "not shown as a table: " + err.Error()}
	}
	return Preview{Kind: Sheet, Table: table, Note: table.Counts()}
}

func readTable(text string, whole bool) (*Table, error) {
	if !whole { // the last row is a part of one
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma, reader.FieldsPerRecord, reader.ReuseRecord = delimiter(text), -1, true
	t := &Table{More: !whole}
	for {
		record, err := reader.Read()
		switch cut := t.More && t.AllRows > 1; {
		case errors.Is(err, io.EOF), err != nil && cut: // what ends the cell may stand behind what was read
			return t, t.finish()
		case err != nil:
			return nil, tableError(err)
		}
		t.add(record)
		if t.More && len(t.Rows) > maxRows {
			return t, t.finish()
		}
	}
}

func tableError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("the quotes in line %d don't match", parse.Line)
	}
	return err
}

// add takes a row, the first one among them.
func (t *Table) add(record []string) {
	t.AllRows++
	t.AllColumns = max(t.AllColumns, len(record))
	if len(t.Rows) > maxRows {
		return
	}
	row := make([]string, 0, min(len(record), maxColumns))
	for _, cell := range record[:cap(row)] {
		row = append(row, terminal.Plain(fault.Clip(cell, maxCell)))
	}
	t.Rows = append(t.Rows, row)
}

// finish makes the first row the head, and all rows as long as the widest.
func (t *Table) finish() error {
	if t.AllRows == 0 {
		return errors.New("it has no rows, or its first one is longer than 256 KiB")
	}
	t.Numbers = make([]bool, min(t.AllColumns, maxColumns))
	for i, row := range t.Rows {
		t.Rows[i] = append(row, make([]string, max(0, len(t.Numbers)-len(row)))...)
	}
	if slices.ContainsFunc(t.Rows[0], isWord) {
		t.Head, t.Rows = t.Rows[0], t.Rows[1:]
		t.AllRows--
	}
	t.Rows = t.Rows[:min(len(t.Rows), maxRows)]
	for column := range t.Numbers {
		t.Numbers[column] = t.isOfNumbers(column)
	}
	return nil
}

func (t *Table) isOfNumbers(column int) bool {
	found := false
	for _, row := range t.Rows {
		if isWord(row[column]) {
			return false
		}
		found = found || row[column] != ""
	}
	return found
}

// number is one as people write it: -1,234.5, 1 000, 12 %, 3e-7.
var number = lazyregexp.New(`^\s*[-+−]?(\d+([.,' ’\x{a0}\x{202f}]\d+)*|\.\d+)([eE][-+]?\d+)?[ \x{a0}\x{202f}]?%?\s*$`)

func isWord(cell string) bool { return strings.TrimSpace(cell) != "" && !number().MatchString(cell) }

// delimiter is what stands most often in the first line, out of quotes.
func delimiter(text string) rune {
	const known = ",;\t"
	line, _, _ := strings.Cut(text, "\n")
	var counts [len(known)]int
	quoted := false
	for _, c := range line {
		if at := strings.IndexRune(known, c); at >= 0 && !quoted {
			counts[at]++
		}
		quoted = quoted != (c == '"')
	}
	return rune(known[slices.Index(counts[:], slices.Max(counts[:]))])
}
