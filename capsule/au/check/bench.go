package check

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
)

// bench is an observation with its derived values, computed once for all checks.
type bench struct {
	Observation
	card    *au.Card // nil unless --describe printed one that can be used
	cardErr error    // why it is no valid one
	outputs map[Scenario]outcome
}

// outcome is the judgement of a run's stdout.
type outcome struct {
	doc *au.Output
	err error
}

func newBench(o Observation) *bench {
	b := &bench{Observation: o, outputs: map[Scenario]outcome{}}
	for s, run := range o.Runs {
		doc, err := au.ParseOutput(bytes.NewReader(run.Stdout), 0)
		b.outputs[s] = outcome{doc, err}
	}
	if run, ok := o.Runs[ScenarioDescribe]; ok {
		_, b.cardErr = au.ParseCard(run.Stdout)
		b.card, _ = au.ReadCard(run.Stdout) // an odd card still says what the unit takes
	}
	return b
}

// scenarios lists the scenarios that were run, except those that only describe.
func (b *bench) scenarios() []Scenario {
	all := slices.Sorted(maps.Keys(b.Runs))
	return slices.DeleteFunc(all, func(s Scenario) bool { return slices.Contains(describes, s) })
}

// notStarted reports whether the program never began, or ended as those do that can't start
// another.
func (r Run) notStarted() bool {
	return r.StartError != "" || au.ExitMeaning(r.ExitCode, nil).Class == au.ExitNotStarted
}

const couldNotStart = "the program could not be started"

// on judges one scenario if it was run.
func (b *bench) on(s Scenario, judge func(Run, outcome) Verdict) Verdict {
	run, ok := b.Runs[s]
	if !ok {
		return notApplicable("%s was not tried", s)
	}
	if run.notStarted() {
		return notApplicable("%s: %s", s, couldNotStart)
	}
	if run.TimedOut {
		return fail("%s: it was still running when its time was up", s)
	}
	return judge(run, b.outputs[s])
}

// onModel judges a scenario of a unit that takes a model.
func (b *bench) onModel(s Scenario, judge func(Run, outcome) Verdict) Verdict {
	if b.card != nil && !b.card.NeedsModel() {
		return notApplicable("its model card has no model-path")
	}
	return b.on(s, judge)
}

// onCard judges the model card if there is a valid one.
func (b *bench) onCard(judge func(*au.Card) Verdict) Verdict {
	if b.card == nil {
		return notApplicable("there is no valid model card")
	}
	return judge(b.card)
}

// ofSource judges the source if it was examined.
func ofSource(what string, found func(Source) bool) func(*bench) Verdict {
	return func(b *bench) Verdict {
		switch {
		case b.Source == nil:
			return notApplicable("only its source can show it, and there is only the program")
		case found(*b.Source):
			return pass("found %s", what)
		}
		return fail("found no %s", what)
	}
}

// count sums a figure over the runs, and counts the runs in which it was observed.
func (b *bench) count(of func(Run) *int) (sum, observed int) {
	for _, run := range b.Runs {
		if n := of(run); n != nil {
			sum += *n
			observed++
		}
	}
	return sum, observed
}

// none passes if the figure was observed as zero in every run, and the unit was run for
// more than its card.
func (b *bench) none(what string, of func(Run) *int) Verdict {
	sum, observed := b.count(of)
	switch {
	case sum > 0:
		return fail("%s: %d in %d runs", what, sum, observed)
	case len(b.scenarios()) == 0:
		return notApplicable("%s: nothing was tried", what)
	case observed < len(b.Runs):
		return notApplicable("%s: counted in %d of %d runs only", what, observed, len(b.Runs))
	}
	return pass("%s: none in %d runs", what, observed)
}

// crash says how a run ended that didn't come to an end of its own, or "".
func crash(run Run) string {
	switch {
	case run.StartError != "":
		return couldNotStart + ": " + run.StartError
	case run.notStarted():
		return fmt.Sprintf("it exited with %d: it, or a program that it calls, could not be started", run.ExitCode)
	}
	if run.OutOfMemory {
		return "it was killed for its memory"
	}
	if exit := au.ExitMeaning(run.ExitCode, nil); exit.Class == au.ExitSignal {
		return "it was ended by " + exit.Name
	}
	return ""
}

// outputProblem says what is wrong with an output, and how to fix it.
func outputProblem(err error) string {
	var bad *au.OutputError
	if errors.As(err, &bad) {
		return bad.Message + "; " + bad.Hint
	}
	return fault.Public(err).Msg
}
