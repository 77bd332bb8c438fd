package store

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// A list by metadata may go through the runs by one of several indexes, each in the order
// of lists. The filter doesn't show which index is the shortest: a user may have a few runs
// or all of them.

// The indexes are counted this far, and ten times as far each time when none is shorter.
const (
	firstLook = 1_000
	lastLook  = 100_000
)

// lead returns the key of the metadata whose index leads to the fewest runs, or "" if an
// index of the runs does.
func (s *Store) lead(ctx context.Context, f Filter, upTo position) (string, error) {
	leads := f.leads()
	for look := firstLook; len(leads) > 1 && look <= lastLook; look *= 10 {
		best, fewest := "", look
		for _, by := range leads {
			text, args := f.counting(by, upTo, fewest)
			var n int
			if err := s.readers.QueryRowContext(ctx, text, args...).Scan(&n); err != nil {
				return "", err
			}
			if n < fewest {
				best, fewest = by, n
			}
		}
		if fewest < look {
			return best, nil
		}
	}
	return leads[0], nil
}

// leads are the indexes that may lead: the keys of the metadata, and "" for the index of
// the runs that the rest of the filter chooses. There is always one.
func (f Filter) leads() []string {
	if len(f.Metadata) == 0 || f.Session != "" || f.Schedule != "" || f.Parent != "" || f.Context != "" ||
		f.Root != "" || f.Unfinished {
		return []string{""} // they are few
	}
	keys := f.keys()
	if f.Unit != "" || len(f.States) > 0 {
		keys = append(keys, "")
	}
	return keys
}

func (f Filter) keys() []string { return slices.Sorted(maps.Keys(f.Metadata)) }

// counting counts the entries of an index, up to a number, and reads the index alone.
func (f Filter) counting(by string, upTo position, most int) (string, []any) {
	alone := f
	alone.Metadata = nil
	text, args := alone.selects("1", "", upTo)
	if by != "" {
		terms, values := Filter{Since: f.Since}.terms(by, nil, upTo)
		text, args = "SELECT 1 FROM "+byValue+" WHERE lead.key = ? AND lead.value = ? AND "+
			terms, append([]any{by, f.Metadata[by]}, values...)
	}
	return "SELECT count(*) FROM (" + text + " LIMIT ?)", append(args, most)
}

const byValue = "metadata AS lead INDEXED BY metadata_by_value"

// order is the order of lists in the columns of the leading index.
func order(by string) (created, seq string) {
	if by != "" {
		return "lead.created_at", "lead.run"
	}
	return "runs.created_at", "runs.seq"
}

// led selects columns of the runs that the metadata leads to.
func (f Filter) led(columns, by string, upTo position) (string, []any) {
	terms, values := f.terms(by, distinct(f.States), upTo)
	return "SELECT " + columns + " FROM " + byValue + " CROSS JOIN runs ON runs.seq = lead.run" +
		" WHERE lead.key = ? AND lead.value = ? AND " + terms, append([]any{by, f.Metadata[by]}, values...)
}

// tagged is the condition on the metadata that doesn't lead.
func (f Filter) tagged(by string) (string, []any) {
	var terms []string
	var args []any
	for _, key := range f.keys() {
		if key != by {
			terms = append(terms, "EXISTS (SELECT 1 FROM metadata WHERE run = runs.seq AND key = ? AND value = ?)")
			args = append(args, key, f.Metadata[key])
		}
	}
	return strings.Join(terms, " AND "), args
}
