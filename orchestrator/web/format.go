package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/web/preview"
)

// none is shown where there is nothing, which isn't 0.
const none = "—"

// icon is the mark of a state, whose symbol stands in the page.
func icon(name string) template.HTML {
	//nolint:gosec // names are the page's own
	return template.HTML(`<svg width="16" height="16" aria-hidden="true"><use href="#i-` +
		template.HTMLEscapeString(name) + `"/></svg>`)
}

// short is the end of an id: the first characters of siblings are alike.
func short(id string) string {
	const shown = 8
	if len(id) <= shown {
		return id
	}
	return "…" + id[len(id)-shown:]
}

// num is a number with a comma after each thousand.
func num(n int64) string {
	if n < 0 {
		return "-" + num(-n)
	}
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// count is how many there are, as far as they were counted.
func count(n int64, more bool) string {
	if more {
		return num(n) + "+"
	}
	return num(n)
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return num(n) + " " + many
}

// size is a number of bytes, in the unit that people read.
func size(n int64) string { return quantity.Rounded(n) }

// cost is what models took, with so many decimals; what wasn't priced isn't free.
func cost(total *api.ModelTotal, decimals int) string {
	switch {
	case total == nil, *total == api.ModelTotal{}:
		return none
	case total.Cost == 0:
		return "not priced"
	}
	const billionth = 1e9
	text := strconv.FormatFloat(float64(total.Cost)/billionth, 'f', decimals, 64)
	if strings.Trim(text, "0.") == "" {
		return "<" + strconv.FormatFloat(math.Pow10(-decimals), 'f', decimals, 64)
	}
	return text
}

// Cost is what models took.
func (f *frame) Cost(total *api.ModelTotal, decimals int) string { return cost(total, decimals) }

// span is how long something took: 840 ms, 1.63 s, 41.8 s, 2 min 24 s, 3 h 5 min.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return pair(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "min")
	}
	return pair(d, 24*time.Hour, "d", time.Hour, "h")
}

// lasting is a number of milliseconds as a duration, and millis is how long it is.
func lasting(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func millis(ms float64) string { return span(lasting(ms)) }

// took is millis of what may not be known, which is 0.
func took(ms float64) string {
	if ms == 0 {
		return none
	}
	return millis(ms)
}

func pair(d, large time.Duration, name string, small time.Duration, rest string) string {
	text := fmt.Sprintf("%d %s", d/large, name)
	if left := d % large / small; left > 0 {
		text += fmt.Sprintf(" %d %s", left, rest)
	}
	return text
}

// Time is a moment by the clock. Browsers show how long ago it was, if the viewer wants that.
func (f *frame) Time(at time.Time) template.HTML {
	if at.IsZero() {
		return none
	}
	//nolint:gosec // all of it is made here
	return template.HTML(fmt.Sprintf(`<time datetime="%[1]s" title="%[2]s"%[3]s>%[2]s</time>`,
		at.UTC().Format(time.RFC3339Nano), f.clock(at), map[bool]string{false: " data-ago"}[f.Absolute]))
}

// Clock is Time by the clock alone, to the tenth of a second.
func (f *frame) Clock(at time.Time) string { return at.In(f.zone).Format("15:04:05.0") }

// Date is a moment by the clock, whatever the viewer wants: it says what counts.
func (f *frame) Date(at time.Time) string { return f.clock(at) }

// clock is the time of day, of other days with the date.
func (f *frame) clock(at time.Time) string {
	at, now := at.In(f.zone), f.now.In(f.zone)
	switch {
	case at.YearDay() == now.YearDay() && at.Year() == now.Year():
		return at.Format("15:04:05")
	case at.Year() == now.Year():
		return at.Format("2 Jan, 15:04")
	}
	return at.Format("2 Jan 2006, 15:04")
}

// Lasting is how long something took, or has taken until now, which the page counts on.
func (f *frame) Lasting(from time.Time, to *time.Time) template.HTML {
	if from.IsZero() {
		return none
	}
	if to != nil && !to.IsZero() {
		return template.HTML(span(to.Sub(from))) //nolint:gosec // it was made here
	}
	//nolint:gosec // it was made here
	return template.HTML(fmt.Sprintf(`<span class="num" data-since="%s">%s</span>`, from.UTC().Format(time.RFC3339Nano),
		span(f.now.Sub(from))))
}

// state is where a run stands, for people: the name of its icon and colour, and its word.
type state struct{ Class, Word string }

// stateOf is where a run stands. asks says that it waits for a person.
func stateOf(s api.State, outcome api.Outcome, asks bool) state {
	switch {
	case outcome == api.Success:
		return state{"ok", "Succeeded"}
	case outcome == api.TimedOut:
		return state{"late", "Timeout"}
	case outcome == api.WasCancelled:
		return state{"off", "Cancelled"}
	case outcome != "":
		return state{"bad", "Failed"}
	case asks:
		return state{"ask", "Waiting"}
	case s == api.Idle:
		return state{"queue", "Queued"}
	}
	return state{"run", "Running"}
}

// cleaned is a foreign text of several lines without what a terminal obeys, as far as it is shown.
func cleaned(text string) string {
	cut := ""
	if len(text) > prettyBytes {
		cut = "\n… (" + size(int64(len(text)-prettyBytes)) + " more: see the run)"
		text = strings.ToValidUTF8(text[:prettyBytes], "")
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = preview.Clean(line)
	}
	return strings.Join(lines, "\n") + cut
}

// decimal is a number as short as it can be.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
