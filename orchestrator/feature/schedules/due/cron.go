package due

import (
	"math/bits"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// pattern is a cron expression: sets of bits.
type pattern struct {
	minute, hour, day, month, weekday uint64
	anyDay                            bool // of the month and of the week both hold; else one of them is enough
}

const (
	maxExpression = 256 // bytes
	// mostYears bounds the search: 29 February on one weekday comes back after 40 years at most.
	mostYears = 41
)

var (
	shorthands = map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
		"@yearly": "0 0 1 1 *",
	}
	parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	// part is one of a field's list. The parser takes more, and means less by it.
	part = lazyregexp.New(`^(\*|([0-9]{1,2}|[A-Za-z]{3})(-([0-9]{1,2}|[A-Za-z]{3}))?)(/[0-9]{1,2})?$`)
)

const cronHint = "five fields: minute, hour, day (of the month), month, weekday, such as 30 2 * * 1-5; or @hourly, " +
	"@daily, @weekly, @monthly, @yearly"

func (r *reader) cron(text string, zone *time.Location) times {
	if problem, hint := unreadable(text); problem != "" {
		r.add("/cron", "%s", problem).Hint = hint
		return nil
	}
	if long := shorthands[text]; long != "" {
		text = long
	}
	p, err := parsePattern(text)
	if err != nil {
		r.add("/cron", "%s can't be read: %s", fault.Quote(text), fault.Quote(err.Error())).Hint = cronHint
		return nil
	}
	if p.after(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		r.add("/cron", "%s never comes: there is no such day", fault.Quote(text)).
			Hint = "look at the day of the month and at the month"
		return nil
	}
	if byElapsedTime(text) {
		return elapsed{p, zone}
	}
	return fixed{p, zone}
}

// unreadable says what other programs take and we don't; "" for nothing.
func unreadable(text string) (problem, hint string) {
	switch {
	case len(text) > maxExpression:
		return "the expression is longer than 256 bytes", cronHint
	case strings.HasPrefix(text, "@every"):
		return "@every isn't taken", "write every: 15m in place of cron"
	case strings.Contains(text, "TZ="):
		return "a zone in the expression isn't taken", "write timezone: Europe/Berlin beside cron"
	case strings.HasPrefix(text, "@") && shorthands[text] == "":
		return fault.Quote(text) + " isn't known", cronHint
	case strings.HasPrefix(text, "@"):
		return "", ""
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return fault.Quote(text) + " doesn't have five fields", cronHint
	}
	for _, field := range fields {
		for _, one := range strings.Split(field, ",") {
			if !part().MatchString(one) {
				return fault.Quote(one) +
						" isn't taken",
					"numbers, names of three letters, *, lists with ',', ranges with '-', steps with '/'; no L, " +
						"W, # or ?"
			}
		}
	}
	return "", ""
}

// byElapsedTime reports whether the minute or the hour of an expression begins with a `*`, as
// Debian's cron has it.
func byElapsedTime(text string) bool {
	fields := strings.Fields(text)
	return fields[0][0] == '*' || fields[1][0] == '*'
}

func parsePattern(text string) (pattern, error) {
	parsed, err := parser.Parse(text)
	if err != nil {
		return pattern{}, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return pattern{}, fault.New(fault.Internal, "the expression is of another kind")
	}
	fields := strings.Fields(text)
	const some = 1<<60 - 1 // without the parser's own marks
	return pattern{
		minute: spec.Minute & some, hour: spec.Hour & some, day: spec.Dom & some, month: spec.Month & some,
		weekday: spec.Dow & some,
		anyDay:  fields[2][0] == '*' || fields[4][0] == '*',
	}, nil
}

func has(set uint64, n int) bool { return set&(1<<uint(n)) != 0 }

// onDate reports whether the pattern has times on the date of a wall time.
func (p pattern) onDate(wall time.Time) bool {
	if !has(p.month, int(wall.Month())) {
		return false
	}
	day, weekday := has(p.day, wall.Day()), has(p.weekday, int(wall.Weekday()))
	if p.anyDay {
		return day && weekday
	}
	return day || weekday
}

// after returns the first wall time after another one that matches the pattern; zero if there is
// none for decades.
func (p pattern) after(wall time.Time) time.Time {
	wall = wall.Truncate(time.Minute).Add(time.Minute)
	last := wall.AddDate(mostYears, 0, 0)
	for wall.Before(last) {
		if !has(p.month, int(wall.Month())) {
			wall = time.Date(wall.Year(), wall.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		if p.onDate(wall) {
			if at, there := p.onSameDay(wall); there {
				return at
			}
		}
		wall = wall.Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return time.Time{}
}

// onSameDay returns the first time of day from a wall time on.
func (p pattern) onSameDay(wall time.Time) (time.Time, bool) {
	hour, minute := wall.Hour(), wall.Minute()
	if has(p.hour, hour) {
		if m := firstFrom(p.minute, minute); m < 60 {
			return wall.Add(time.Duration(m-minute) * time.Minute), true
		}
	}
	h := firstFrom(p.hour, hour+1)
	if h >= 24 {
		return wall, false
	}
	return wall.Truncate(24 * time.Hour).
		Add(time.Duration(h)*time.Hour + time.Duration(firstFrom(p.minute, 0))*time.Minute), true
}

// firstFrom returns the first number of a set from another on; 64 if there is none.
func firstFrom(set uint64, n int) int {
	return bits.TrailingZeros64(set &^ (1<<uint(n) - 1))
}
