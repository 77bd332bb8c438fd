package check

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/capsule/au"
)

func judgeEmpty(e *evidence) (Verdict, string)   { return e.on(ScenarioEmpty, e.bears) }
func judgeCorrupt(e *evidence) (Verdict, string) { return e.on(ScenarioCorrupt, e.bears) }

// bears passes a run on a bad input if the unit refused the input, takes any bytes, or says
// in its result what it could not do (section 7.3).
func (e *evidence) bears(run Run, out outcome) (Verdict, string) {
	if run.ExitCode != 0 {
		return refuses(run, "an invalid input exits with 2 (section 7.1)")
	}
	switch {
	case out.err != nil:
		return noResult()
	case e.card == nil:
		return notApplicable("it exited with 0, and without a valid model card nobody knows what it takes")
	case e.card.TakesAnything():
		return pass("it takes any bytes, and gave a result")
	case len(out.doc.Warnings()) > 0:
		return pass("it gave a result with warnings")
	}
	return fail("it exited with 0 and no warnings, as if the input were good")
}

// noResult leaves a run without a result to the check of what is printed.
func noResult() (Verdict, string) { return notApplicable("it exited with 0, and printed no result") }

// refuses passes a code for bad input, or one of the unit's own. Messages have a check of their own.
func refuses(run Run, rule string) (Verdict, string) {
	if au.ExitMeaning(run.ExitCode, nil).Class == au.ExitGeneralError {
		return fail("it exited with %d; %s", run.ExitCode, rule)
	}
	return pass("it exited with %d", run.ExitCode)
}

func judgeHuge(e *evidence) (Verdict, string) {
	return e.on(ScenarioHuge, func(run Run, out outcome) (Verdict, string) {
		return survives(run, out, fmt.Sprintf("it gave a result of %d bytes of input", run.StdinBytes))
	})
}

func judgeLittleMemory(e *evidence) (Verdict, string) {
	for _, s := range slices.Sorted(maps.Keys(e.Runs)) {
		if run := e.Runs[s]; run.OutOfMemory {
			return fail("%s: %s", s, broken(run))
		}
	}
	return e.on(ScenarioLittleMemory, func(run Run, out outcome) (Verdict, string) {
		return survives(run, out, "the memory was enough for it")
	})
}

// survives passes a run that ended by itself: with a result, or with any code.
func survives(run Run, out outcome, result string) (Verdict, string) {
	switch {
	case run.ExitCode != 0:
		return pass("it exited with %d", run.ExitCode)
	case out.err != nil:
		return noResult()
	}
	return Pass, result
}

func judgeMissingModel(e *evidence) (Verdict, string) {
	return e.onModel(ScenarioMissingModel, refusesModel)
}

func judgeTraversal(e *evidence) (Verdict, string) { return e.onModel(ScenarioTraversal, refusesModel) }

// refusesModel passes a refused model path. The specification counts it among the invalid
// arguments, so no other code will do.
func refusesModel(run Run, _ outcome) (Verdict, string) {
	if run.ExitCode != 2 {
		return fail("it exited with %d; a bad model path exits with 2 (section 7.1)", run.ExitCode)
	}
	return pass("it exited with 2")
}

func judgeMessages(e *evidence) (Verdict, string) {
	return e.onFailed("stderr said something", func(run Run) string {
		if problem := messageProblem(run); problem != "" {
			return ", but " + problem
		}
		return ""
	})
}

// crashPhrases are the traces of a crash, and texts that explain nothing (section 7.2).
var crashPhrases = []string{
	"segmentation fault", "core dumped", "panicked at", "panic:", "goroutine 1 [", "traceback (most recent call last)",
	"terminate called after", "something went wrong", "exception in thread",
}

// messageProblem says why stderr isn't a message for a person, or "".
func messageProblem(run Run) string {
	message := bytes.ToLower(bytes.TrimSpace(run.StderrTail))
	switch {
	case len(message) == 0:
		return "stderr is empty"
	case !utf8.Valid(message) && run.StderrBytes <= int64(len(run.StderrTail)): // a tail may start within a character
		return "stderr is not text"
	case slices.ContainsFunc(crashPhrases, func(p string) bool { return bytes.Contains(message, []byte(p)) }):
		return "stderr shows a crash, or says nothing of the cause"
	}
	return ""
}
