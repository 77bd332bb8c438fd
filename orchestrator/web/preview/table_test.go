package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content, name string
		want          Table
	}{
		"commas": {"month,late\nMay,12\n\"June, cold\",9\n", "a.csv", Table{
			Head: []string{"month", "late"}, Rows: [][]string{{"May", "12"}, {"June, cold", "9"}},
			Numbers: []bool{false, true}, AllRows: 2, AllColumns: 2,
		}},
		"semicolons and decimals of Europe": {"\uFEFF\"a, b\";c\r\n\"1,5\";-1.234,5\r\n\"2\";x\r\n", "a.CSV", Table{
			Head: []string{"a, b", "c"}, Rows: [][]string{{"1,5", "-1.234,5"}, {"2", "x"}},
			Numbers: []bool{true, false}, AllRows: 2, AllColumns: 2,
		}},
		"tabs, and rows of several lengths": {"a\tb\n1\n2\t \t−3e-7\n", "a.tsv", Table{
			Head: []string{"a", "b", ""}, Rows: [][]string{{"1", "", ""}, {"2", " ", "−3e-7"}},
			Numbers: []bool{true, true, true}, AllRows: 2, AllColumns: 3,
		}},
		"no head": {"1,2\n3,\n", "a.csv", Table{
			Rows: [][]string{{"1", "2"}, {"3", ""}}, Numbers: []bool{true, true}, AllRows: 2, AllColumns: 2,
		}},
		"a head alone": {"a,b", "a.csv", Table{
			Head: []string{"a", "b"}, Rows: [][]string{}, Numbers: []bool{false, false}, AllColumns: 2,
		}},
		"cells that do something": {"a\n=cmd|' /C calc'!A0\n\"b\nc\x1b[1m\u202e\"\n" + strings.Repeat("é", 200) + "\n", "a.csv", Table{
			Head: []string{"a"}, Rows: [][]string{{"=cmd|' /C calc'!A0"}, {"b\nc\uFFFD[1m\uFFFD"}, {strings.Repeat("é", 150) + "…"}},
			Numbers: []bool{false}, AllRows: 3, AllColumns: 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := of(c.content, c.name)
			if diff := cmp.Diff(Preview{Kind: Sheet, Table: &c.want, Note: c.want.Counts()}, p); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATableThatCantBeReadIsAText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, note string }{
		"a quote without an end": {"a,b\n1,\"2\n3,4\n", "not shown as a table: the quotes in line 3 don't match"},
		"a quote in a cell":      {"a,b\n1,5\" pipe\n", "not shown as a table: the quotes in line 2 don't match"},
		"no rows":                {"\n\n", "not shown as a table: it has no rows, or its first one is longer than 256 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(Preview{Kind: Text, Text: c.content, Note: c.note}, of(c.content, "a.csv")); diff != "" {
				t.Error(diff)
			}
		})
	}
	long := strings.Repeat("1,", 1_000_000)
	note := "not shown as a table: it has no rows, or its first one is longer than 256 KiB; the first 256 KiB"
	if p := of(long, "a.csv"); p.Kind != Text || p.Note != note || p.Text != long[:maxHead] {
		t.Errorf("%s, %q, %d bytes", p.Kind, p.Note, len(p.Text))
	}
}

func TestATableTellsHowMuchOfItIsShown(t *testing.T) {
	t.Parallel()
	rows := func(n int) string { return "a\n" + strings.Repeat("x\n", n) }
	wide := func(n int) string { return "a" + strings.Repeat(",b", n-1) + "\n" }
	for name, c := range map[string]struct {
		content  string
		rows     int
		want     string
		wantTop8 string
	}{
		"one row":             {rows(1), 1, "1 row, 1 column", "1 row, 1 column"},
		"12 rows":             {rows(12), 12, "12 rows, 1 column", "8 of 12 rows, 1 column"},
		"200 rows":            {rows(200), 200, "200 rows, 1 column", "8 of 200 rows, 1 column"},
		"201 rows":            {rows(201), 200, "200 of 201 rows, 1 column", "8 of 201 rows, 1 column"},
		"200 rows of numbers": {strings.Repeat("1\n", 201), 200, "200 of 201 rows, 1 column", "8 of 201 rows, 1 column"},
		"more than is read":   {rows(200_000), 200, "the first 200 rows, 1 column", "the first 8 rows, 1 column"},
		"long rows, and the last is cut": {
			"a\n" + strings.Repeat(strings.Repeat("x", 99_999)+"\n", 5), 2, "the first 2 rows, 1 column", "the first 2 rows, 1 column",
		},
		"a cell that is cut": {
			rows(3) + "\"" + strings.Repeat("x\n", maxHead), 3, "the first 3 rows, 1 column", "the first 3 rows, 1 column",
		},
		"51 columns":     {wide(51), 0, "0 rows, 50 of 51 columns", "0 rows, 50 of 51 columns"},
		"130000 columns": {wide(130_000), 0, "0 rows, 50 of 130000 columns", "0 rows, 50 of 130000 columns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := of(c.content, "a.csv")
			if p.Kind != Sheet || len(p.Table.Rows) != c.rows || p.Note != c.want {
				t.Fatalf("%s of %d rows, %q", p.Kind, len(p.Table.Rows), p.Note)
			}
			if top := p.Table.Top(8); top.Counts() != c.wantTop8 || len(top.Rows) > 8 || len(p.Table.Rows) != c.rows {
				t.Errorf("%d rows, %q", len(top.Rows), top.Counts())
			}
		})
	}
}

func TestANumberIsKnown(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]bool{
		"0": true, " -1.5 ": true, "+1,234.50": true, "1 000": true, "1'000": true, ".5": true, "12 %": true, "1e9": true, "−3": true,
		"": true, "2026-11-27": false, "1.": false, "a1": false, "0x1f": false, "--1": false, "1e": false, "%": false,
	} {
		t.Run(fmt.Sprintf("%q", cell), func(t *testing.T) {
			t.Parallel()
			if isWord(cell) == want {
				t.Errorf("a word: %v", !want)
			}
		})
	}
}
