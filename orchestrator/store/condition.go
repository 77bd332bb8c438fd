package store

import (
	"slices"
	"strings"
)

// SQLite chooses the index of a list. It has no statistics, so its choice depends on the statement
// alone: on which columns a term binds, and on the share of the rows that it is told to expect.

// condition is what a statement asks of its rows: terms that all hold, and what is bound in them.
type condition struct {
	terms []string
	args  []any
}

func (c *condition) add(term string, args ...any) {
	c.terms, c.args = append(c.terms, term), append(c.args, args...)
}

// is adds that a column has one of the values, each of which many rows may have. Without values any
// will do.
func (c *condition) is(column string, values ...string) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	c.add("likelihood("+column+" IN (?"+strings.Repeat(", ?", len(values)-1)+"), 0.1)", args...)
}

// has adds that a column has a value that few rows have; its index may have none that are empty. Without a
// value any will do.
func (c *condition) has(column, value string) {
	if value != "" {
		c.add("likelihood("+column+" = ?, 0.0001) AND "+column+" <> ''", value)
	}
}

// between adds that a row is not older than a time and stands behind a position.
func (c *condition) between(at, seq string, since int64, upTo position) {
	c.add(at+" >= ? AND ("+at+", "+seq+") < (?, ?)", since, upTo.at, upTo.seq)
}

// statement is a query, or a part of one, with what is bound in it.
type statement struct {
	text string
	args []any
}

func (c *condition) of(selected string) statement {
	return statement{selected + " WHERE " + c.and(), c.args}
}

func (c *condition) and() string { return strings.Join(c.terms, " AND ") }

// union is the rows of all parts. No row is of two.
func union(parts ...statement) (all statement) {
	for i, part := range parts {
		if i > 0 {
			all.text += " UNION ALL "
		}
		all.text, all.args = all.text+part.text, append(all.args, part.args...)
	}
	return all
}

// page is the rows of a statement of listed columns by their place, the latest first. SQLite merges
// parts that it can read in this order.
func (s statement) page(limit int) statement {
	return s.then(" ORDER BY at DESC, seq DESC LIMIT ?", limit)
}

// then is the statement with more behind it.
func (s statement) then(text string, args ...any) statement {
	return statement{s.text + text, slices.Concat(s.args, args)}
}

func (s statement) count() statement {
	return statement{"SELECT count(*) FROM (" + s.text + ")", s.args}
}

// choices are the parts in which a column's values are looked for: one for each value, since an index
// has the order of a list for one value alone; or one for all where another column leads to the rows.
func choices(values []string, together bool) [][]string {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	if together || len(values) == 0 {
		return [][]string{values}
	}
	return slices.Collect(slices.Chunk(values, 1))
}

// some is the value as a list, which is empty without one.
func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
