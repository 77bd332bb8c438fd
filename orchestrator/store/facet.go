package store

import (
	"context"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
)

// facets are the columns by which runs are counted.
var facets = []string{"state", "outcome", "error_kind", "unit", "kind"}

// mostFaceted is how many runs are counted: reading them takes some 10 ms.
const mostFaceted = 10_000

// mostValues is how many values of a column are told of.
const mostValues = 100

// Facet is how many runs of a list have which value of a column.
type Facet struct {
	Counts []FacetCount // the most frequent first, at most 100
	Runs   int64        // that were counted: the newest 10,000 at most
	More   bool         // there are older ones, which weren't
}

// FacetCount is how many runs have a value; "": they have none.
type FacetCount struct {
	Value string
	Runs  int64
}

// Facet counts the newest runs that a filter selects, by a column: state, outcome, error_kind, unit or kind. Limit
// means nothing. Another column, and what List refuses, are Input faults.
func (s *Runs) Facet(ctx context.Context, f Filter, column string) (facet Facet, err error) {
	if !slices.Contains(facets, column) {
		return facet, fault.New(fault.Input, "runs aren't counted by %.64q", column).
			WithHint("count them by state, outcome, error_kind, unit or kind")
	}
	if err := f.check(); err != nil {
		return facet, err
	}
	upTo, err := f.upTo(s.core.seal)
	if err != nil {
		return facet, err
	}
	by, err := f.chooseIndex(ctx, s.core.readers, upTo)
	if err != nil {
		return facet, s.core.explain(ctx, "count runs", err)
	}
	newest := f.rows(by, upTo, func(at, seq string) string {
		return "SELECT runs." + column + " AS facet, " + at + " AS at, " + seq + " AS seq"
	}).page(mostFaceted + 1)
	counts, err := list(ctx, s.core, "count runs",
		func(row scanner, c *FacetCount) error { return row.Scan(&c.Value, &c.Runs) },
		"SELECT facet, count(*) FROM ("+newest.text+") GROUP BY facet ORDER BY count(*) DESC, facet", newest.args...)
	for _, c := range counts {
		facet.Runs += c.Runs
	}
	if facet.More = facet.Runs > mostFaceted; facet.More {
		facet.Runs = mostFaceted
	}
	facet.Counts = counts[:min(mostValues, len(counts))]
	return facet, err
}

// LastEnded returns the newest runs of a unit that have ended, by who owns them, without any of their documents.
func (s *Runs) LastEnded(ctx context.Context, unit string, owned Owned, limit int) ([]Run, error) {
	scan := func(row scanner, r *Run) error { return scanSearched(row, r) }
	of := owned.narrowed("runs", statement{selectLastEnded, []any{unit}}).
		then(" ORDER BY created_at DESC, seq DESC LIMIT ?", atMost(limit))
	return list(ctx, s.core, "read last runs", scan, of.text, of.args...)
}

// Not those that are finished: whoever has seen the outcome of a run wants to see it counted.
const selectLastEnded = "SELECT " + searched + ` FROM runs WHERE unit = ? AND outcome <> ''`
