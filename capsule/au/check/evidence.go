package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
)

// evidence is an observation with its derived values, computed once for all checks.
type evidence struct {
	Observation
	check   string   // the id of the check that judges
	card    *au.Card // nil unless --describe printed one that can be used
	cardErr error    // why it isn't a valid one
	outputs map[Scenario]outcome
}

// outcome is the judgement of a run's stdout.
type outcome struct {
	doc *au.Output
	err error
}

func newEvidence(o Observation) *evidence {
	e := &evidence{Observation: o, outputs: map[Scenario]outcome{}}
	for s, run := range o.Runs {
		doc, err := au.ParseOutput(bytes.NewReader(run.Stdout), 0)
		e.outputs[s] = outcome{doc, err}
	}
	if run, ok := o.Runs[ScenarioDescribe]; ok {
		_, e.cardErr = au.ParseCard(run.Stdout)
		e.card, _ = au.ReadCard(run.Stdout) // an odd card still says what the unit takes
	}
	return e
}

// scenarios lists the scenarios that were run, except those that only describe.
func (e *evidence) scenarios() []Scenario {
	all := slices.Sorted(maps.Keys(e.Runs))
	return slices.DeleteFunc(all, func(s Scenario) bool { return slices.Contains(describes, s) })
}

// notStarted reports whether the program never began, or ended as those do that can't start
// another.
func (r Run) notStarted() bool {
	return r.StartError != "" || au.ExitMeaning(r.ExitCode, nil).Class == au.ExitNotStarted
}

const couldNotStart = "the program could not be started"

// on judges one scenario if it was run. An end that isn't the program's own is the failure of one
// check, and says nothing to the others.
func (e *evidence) on(s Scenario, judge func(Run, outcome) (Verdict, string)) (Verdict, string) {
	run, ok := e.Runs[s]
	if !ok {
		return notApplicable("%s was not tried", s)
	}
	switch problem := broken(run); {
	case problem != "" && judgeOf(s, run) == e.check:
		return fail("%s: %s", s, problem)
	case problem != "":
		return notApplicable("%s: %s", s, problem)
	}
	return judge(run, e.outputs[s])
}

// judgeOf is the check that judges how a run was broken off.
func judgeOf(s Scenario, run Run) string {
	owner, ok := map[Scenario]string{
		ScenarioEmpty: "exit-empty-input", ScenarioCorrupt: "exit-corrupt-input", ScenarioHuge: "exit-huge-input",
		ScenarioMissingModel: "exit-missing-model", ScenarioTraversal: "path-traversal",
	}[s]
	switch {
	case run.OutOfMemory, s == ScenarioLittleMemory:
		return memoryID
	case slices.Contains(describes, s):
		return describeID
	case ok && (run.TimedOut || !run.notStarted()):
		return owner
	case run.TimedOut:
		return timeID
	}
	return exitID
}

// onModel judges a scenario of a unit that takes a model.
func (e *evidence) onModel(s Scenario, judge func(Run, outcome) (Verdict, string)) (Verdict, string) {
	if e.card != nil && !e.card.NeedsModel() {
		return notApplicable("its model card has no model-path")
	}
	return e.on(s, judge)
}

// onCard judges the model card if there is a valid one.
func (e *evidence) onCard(judge func(*au.Card) (Verdict, string)) (Verdict, string) {
	if e.card == nil {
		return notApplicable("there is no valid model card")
	}
	return judge(e.card)
}

// ofSource judges the source if it was examined.
func ofSource(what string, found func(Source) bool) func(*evidence) (Verdict, string) {
	return func(e *evidence) (Verdict, string) {
		switch {
		case e.Source == nil:
			return notApplicable("only its source can show it, and there is only the program")
		case found(*e.Source):
			return pass("found %s", what)
		}
		return fail("found no %s", what)
	}
}

// figure is a number that is counted in each run.
type figure struct {
	what string
	of   func(Run) *int
	not  Scenario // of which another check judges it; "" is none
}

// none passes if the figure was observed as zero in every run, and the unit was run for
// more than its card.
func (e *evidence) none(f figure) (Verdict, string) {
	sum, observed, runs := 0, 0, 0
	for s, run := range e.Runs {
		if s == f.not {
			continue
		}
		runs++
		if n := f.of(run); n != nil {
			sum += *n
			observed++
		}
	}
	switch {
	case sum > 0:
		return fail("%s: %d in %d runs", f.what, sum, observed)
	case len(e.scenarios()) == 0:
		return notApplicable("%s: nothing was tried", f.what)
	case observed < runs:
		return notApplicable("%s: counted in %d of %d runs only", f.what, observed, runs)
	}
	return pass("%s: none in %d runs", f.what, observed)
}

// broken says how a run ended that didn't come to an end of its own, or "".
func broken(run Run) string {
	exit := au.ExitMeaning(run.ExitCode, nil)
	switch {
	case run.StartError != "":
		return couldNotStart + ": " + run.StartError
	case run.TimedOut:
		return "it was still running when its time was up"
	case run.notStarted():
		return fmt.Sprintf("it exited with %d: it, or a program that it calls, could not be started", run.ExitCode)
	case run.OutOfMemory:
		return "it was killed for its memory"
	case exit.Class == au.ExitSignal:
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

// sameJSON reports whether two documents are equal. The order of fields doesn't count, but
// numbers must be written alike.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, errOne := decode(a)
	two, errTwo := decode(b)
	return errOne == nil && errTwo == nil && reflect.DeepEqual(one, two)
}

func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}
