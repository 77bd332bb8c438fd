package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Usage is what was used: of runs that ended, and of models by settled calls. Triggers write it in the transactions of
// those, so that what is pruned gives nothing back.
type Usage struct {
	Team, MadeBy, Unit, Outcome, Model string // those by which it is grouped
	Day                                time.Time
	Runs, Calls, Tokens                int64
	Cost                               int64 // billionths of the currency
	Waited, Worked                     time.Duration
	CPU                                time.Duration // of processors, as far as it is known
}

// usageColumns are what usage can be grouped by.
var usageColumns = map[string]string{
	"team": "team", "identity": "made_by", "unit": "unit", "outcome": "outcome", "model": "model", "day": "day",
}

// UsageFilter selects usage.
type UsageFilter struct {
	By           []string  // team, identity, unit, outcome, model, day; none: one sum of all
	Since, Until time.Time // days in UTC, the first inclusive, the last exclusive; zero: open
	Owned        Owned
	Limit        int // at most 10,000; 0 is that
}

const maxUsage = 10_000

// Usages keeps what was used, by day.
type Usages struct{ core *core }

const nanosOfDay = int64(24 * time.Hour)

// Sums returns what a filter selects, grouped and sorted as it says. The error is an Input fault for an unknown group.
func (s *Usages) Sums(ctx context.Context, f UsageFilter) ([]Usage, error) {
	var groups []string
	columns := map[string]string{
		"team": "''", "made_by": "''", "unit": "''", "outcome": "''", "model": "''", "day": "0",
	}
	for _, by := range f.By {
		column, known := usageColumns[by]
		if !known {
			return nil, fault.New(fault.Input, "usage can't be told by %s", fault.Quote(by)).
				WithHint("name some of team, identity, unit, outcome, model and day")
		}
		groups, columns[column] = append(groups, column), column
	}
	c := f.condition()
	of := c.of("SELECT " + strings.Join([]string{
		columns["team"], columns["made_by"], columns["unit"], columns["outcome"], columns["model"], columns["day"],
		"coalesce(sum(runs), 0), coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(cost), 0), " +
			"coalesce(sum(waited), 0), coalesce(sum(worked), 0), coalesce(sum(cpu), 0) FROM usage",
	}, ", "))
	if by := strings.Join(groups, ", "); by != "" {
		of = of.then(" GROUP BY " + by + " ORDER BY " + by)
	}
	limit := f.Limit
	if limit <= 0 || limit > maxUsage {
		limit = maxUsage
	}
	of = of.then(" LIMIT ?", limit)
	return list(ctx, s.core, "read usage", scanUsage, of.text, of.args...)
}

// condition is what is asked of a row.
func (f UsageFilter) condition() (c condition) {
	c.add("true")
	if !f.Since.IsZero() {
		c.add("day >= ?", nanos(f.Since)/nanosOfDay)
	}
	if !f.Until.IsZero() {
		c.add("day < ?", nanos(f.Until)/nanosOfDay)
	}
	f.Owned.narrow(&c, "usage", false)
	if slices.Contains(f.By, "model") {
		c.add("model <> ''")
	}
	if slices.Contains(f.By, "outcome") {
		c.add("outcome <> ''")
	}
	return c
}

func scanUsage(row scanner, u *Usage) error {
	var day int64
	err := row.Scan(&u.Team, &u.MadeBy, &u.Unit, &u.Outcome, &u.Model, &day, &u.Runs, &u.Calls, &u.Tokens, &u.Cost,
		&u.Waited, &u.Worked, &u.CPU)
	if day != 0 {
		u.Day = time.Unix(0, day*nanosOfDay).UTC()
	}
	return err
}

// Trim removes what was used before a day.
func (s *Usages) Trim(ctx context.Context, before time.Time) error {
	return s.core.change(ctx, "trim usage", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "DELETE FROM usage WHERE day < ?", nanos(before)/nanosOfDay)
	})
}
