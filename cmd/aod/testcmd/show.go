package testcmd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// show prints a case when it is over.
func (c caseResult) show(env *cli.Env) {
	out := env.Out
	mark := out.Style(ui.Green, "✓")
	if !c.Passed {
		mark = out.Style(ui.Red, "✗")
	}
	if c.Repeat == nil {
		out.Line("%s %s %s", mark, c.Name, out.Style(ui.Dim, duration(c.MS)))
		for _, d := range c.Differences {
			out.Line("    %s", ui.Printable(d))
		}
		return
	}
	out.Line("%s %s  %s  %s", mark, c.Name, c.Repeat.rate(), out.Style(ui.Dim, c.Repeat.took()))
	if c.Repeat.Runs == 0 {
		out.Line("    %s", c.Differences[0])
	}
	for _, f := range c.Repeat.Failures {
		out.Line("    %s:", f.which())
		for _, d := range f.Differences {
			out.Line("      %s", ui.Printable(d))
		}
	}
}

func duration(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond).String()
}

// shownK is the k of pass@k and pass^k that people are shown; of fewer runs it is their number.
const shownK = 5

// rate says how often the case passed, and how sure that is.
func (r *repetitions) rate() string {
	said := []string{fmt.Sprintf("%d of %d", r.Passed, r.Runs)}
	if r.Interval != nil && r.Runs > 0 {
		at, all := r.atK()
		said = append(said, r.sure(), fmt.Sprintf("pass@%d %s", r.k(), at), fmt.Sprintf("pass^%d %s", r.k(), all))
	}
	switch r.Answers {
	case runflags.Same:
		said = append(said, "replayed, the same each time")
	case runflags.Recorded:
		said = append(said, "replayed")
	}
	return strings.Join(said, ", ")
}

// sure is the rate with its interval.
func (r *repetitions) sure() string {
	return fmt.Sprintf("%s (%s to %s)", percent(r.Rate), percent(r.Interval[0]), percent(r.Interval[1]))
}

func (r *repetitions) k() int { return min(shownK, r.Runs) }

func (r *repetitions) atK() (at, all string) {
	return percent(r.PassAt[r.k()-1]), percent(r.PassAll[r.k()-1])
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }

// took says how long the runs took, and what models took.
func (r *repetitions) took() string {
	said := fmt.Sprintf("%s, p95 %s", duration(r.MS.P50), duration(r.MS.P95))
	if r.Tokens.P95 > 0 {
		said += fmt.Sprintf(", %.0f tokens, p95 %.0f", r.Tokens.P50, r.Tokens.P95)
	}
	if r.Cost > 0 {
		said += fmt.Sprintf(", cost %s", r.Cost)
	}
	if r.Score != nil {
		said += fmt.Sprintf(", score %.2f", *r.Score)
	}
	if r.Grading > 0 {
		said += fmt.Sprintf(", grading cost %s", r.Grading)
	}
	return said
}

// shownRuns is how many runs that failed people are told by their numbers.
const shownRuns = 10

// which says in which runs it was.
func (f failure) which() string {
	numbers := make([]string, 0, shownRuns)
	for _, n := range f.Runs[:min(len(f.Runs), shownRuns)] {
		numbers = append(numbers, strconv.Itoa(n))
	}
	which := "run " + numbers[0]
	if len(f.Runs) > 1 {
		which = fmt.Sprintf("%d runs: %s", len(f.Runs), strings.Join(numbers, ", "))
	}
	if len(f.Runs) > shownRuns {
		which += " …"
	}
	return which
}

// showSum prints what all cases came to.
func (r *testResults) showSum(out *ui.Output) {
	of := ""
	if r.Variant != "" {
		of = r.Variant + ": "
	}
	out.Line("%s%d passed, %d failed%s", of, r.Passed, r.Failed, r.spent())
	if r.Stopped {
		out.Line("not all was run: models have cost --max-cost")
	}
}

// spent says what the repetitions cost; "" for nothing.
func (r *testResults) spent() string {
	var cost api.Cost
	for _, c := range r.Cases {
		if c.Repeat != nil {
			cost += c.Repeat.Cost + c.Repeat.Grading
		}
	}
	if cost == 0 {
		return ""
	}
	return fmt.Sprintf("; models cost %s", cost)
}

// showMarkdown prints a table as the comments of pull requests have it.
func (r *testResults) showMarkdown(out *ui.Output) {
	name := r.Unit
	if r.Variant != "" && r.Variant != r.Unit {
		name += " (" + r.Variant + ")"
	}
	out.Line("**%s**: %d passed, %d failed%s\n", name, r.Passed, r.Failed, r.spent())
	out.Line("| | case | passed | rate, at 95 %% | pass@k | pass^k | p50 | p95 | tokens | cost |")
	out.Line("|---|---|---|---|---|---|---|---|---|---|")
	for _, c := range r.Cases {
		out.Line("%s", c.row())
	}
	for _, c := range r.Cases {
		if c.Repeat == nil && len(c.Differences) > 0 {
			out.Line("\n`%s`:\n", c.Name)
			fence(out, c.Differences)
		}
		if c.Repeat == nil {
			continue
		}
		for _, f := range c.Repeat.Failures {
			out.Line("\n`%s`, %s:\n", c.Name, f.which())
			fence(out, f.Differences)
		}
	}
}

func (c caseResult) row() string {
	mark, name := "✓", strings.ReplaceAll(c.Name, "|", `\|`)
	if !c.Passed {
		mark = "✗"
	}
	r := c.Repeat
	if r == nil {
		passed := 0
		if c.Passed {
			passed = 1
		}
		return fmt.Sprintf("| %s | %s | %d of 1 | | | | %s | | | |", mark, name, passed, duration(c.MS))
	}
	rate, at, all := "replayed, the same each time", "", ""
	if r.Interval != nil && r.Runs > 0 {
		at, all = r.atK()
		rate, at, all = r.sure(), fmt.Sprintf("%s, k %d", at, r.k()), fmt.Sprintf("%s, k %d", all, r.k())
		if r.Answers == runflags.Recorded {
			rate += ", replayed"
		}
	}
	return fmt.Sprintf("| %s | %s | %d of %d | %s | %s | %s | %s | %s | %.0f | %s |",
		mark, name, r.Passed, r.Runs, rate, at, all, duration(r.MS.P50), duration(r.MS.P95), r.Tokens.P50, r.Cost)
}

// fence prints lines that nothing in them can end.
func fence(out *ui.Output, lines []string) {
	for _, line := range lines {
		out.Line("    %s", ui.Printable(line)) // a block by its indentation
	}
}
