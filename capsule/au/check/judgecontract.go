package check

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
)

func judgeDescribe(e *evidence) (Verdict, string) {
	return e.on(ScenarioDescribe, func(_ Run, out outcome) (Verdict, string) {
		for _, s := range describes {
			if verdict, why := e.describes(s, out); verdict == Fail {
				return verdict, why
			}
		}
		return pass("it printed one JSON document and exited with 0, its stdin still open, and the same each time")
	})
}

// describes judges one time that the unit was asked for its card, of which the first gave a
// document.
func (e *evidence) describes(s Scenario, first outcome) (Verdict, string) {
	return e.on(s, func(run Run, out outcome) (Verdict, string) {
		switch {
		case run.ExitCode != 0:
			return fail("it exited with %d, expected 0", run.ExitCode)
		case out.err != nil:
			return fail("%s", outputProblem(out.err))
		case !sameJSON(first.doc.JSON(), out.doc.JSON()):
			return fail("%s: it printed another card than the first time", s)
		}
		return pass("the same card")
	})
}

func judgeCard(e *evidence) (Verdict, string) {
	return e.on(ScenarioDescribe, func(_ Run, out outcome) (Verdict, string) {
		switch {
		case out.err != nil:
			return notApplicable("it printed no document")
		case e.cardErr == nil:
			return pass("all of its fields keep the schema")
		}
		return fail("%s", cardProblems(e.cardErr))
	})
}

// cardProblems lists the first violations of a card; they hold no values.
func cardProblems(err error) string {
	const most = 5
	public := fault.Public(err)
	var said []string
	for _, f := range public.Findings[:min(len(public.Findings), most)] {
		said = append(said, f.Where()+": "+f.Message)
	}
	if len(said) == 0 {
		return public.Msg
	}
	if len(public.Findings) > most {
		said = append(said, "and more")
	}
	return strings.Join(said, "; ")
}

func judgeStdin(e *evidence) (Verdict, string) {
	for _, s := range e.scenarios() { // one that is longer than what it reads shows it
		run, out := e.Runs[s], e.outputs[s]
		if run.ExitCode == 0 && !run.TimedOut && run.StdinTaken != nil && *run.StdinTaken < run.StdinBytes &&
			(out.err != nil || len(out.doc.Warnings()) == 0) {
			return fail("%s: it took %d of %d bytes, and gave a result", s, *run.StdinTaken, run.StdinBytes)
		}
	}
	return e.on(ScenarioSample, func(run Run, _ outcome) (Verdict, string) {
		if run.StdinBytes == 0 || run.StdinTaken == nil {
			return notApplicable("it was not counted how much it took of an input")
		}
		if *run.StdinTaken < run.StdinBytes {
			return fail("it took %d of %d bytes", *run.StdinTaken, run.StdinBytes)
		}
		return pass("it took all %d bytes", run.StdinBytes)
	})
}

func judgeStdout(e *evidence) (Verdict, string) {
	good := 0
	for _, s := range e.scenarios() {
		if e.Runs[s].ExitCode != 0 || e.Runs[s].TimedOut {
			continue
		}
		if err := e.outputs[s].err; err != nil {
			return fail("%s: %s", s, outputProblem(err))
		}
		good++
	}
	if good == 0 {
		return notApplicable("no run exited with 0")
	}
	return pass("one JSON document in each of %d runs that exited with 0", good)
}

func judgeErrorsApart(e *evidence) (Verdict, string) {
	return e.onFailed("stdout was empty", func(run Run) string {
		if n := len(bytes.TrimSpace(run.Stdout)); n > 0 {
			return fmt.Sprintf(" and printed %d bytes on stdout", n)
		}
		return ""
	})
}

// onFailed judges every run in which the unit's exit code wasn't 0. problem goes on with what is
// wrong with one, or is "".
func (e *evidence) onFailed(good string, problem func(Run) string) (Verdict, string) {
	failed := 0
	for _, s := range e.scenarios() {
		run := e.Runs[s]
		if run.ExitCode == 0 || broken(run) != "" {
			continue
		}
		if wrong := problem(run); wrong != "" {
			return fail("%s: it exited with %d%s", s, run.ExitCode, wrong)
		}
		failed++
	}
	if failed == 0 {
		return notApplicable("no run failed")
	}
	return pass("%s in each of %d runs that failed", good, failed)
}

func judgeExitCodes(e *evidence) (Verdict, string) {
	for _, s := range e.scenarios() {
		verdict, why := e.on(s, func(run Run, _ outcome) (Verdict, string) {
			switch refused := run.ExitCode > 1; {
			case s == ScenarioSample && run.ExitCode != 0:
				return fail("%s: it exited with %d, expected 0", s, run.ExitCode)
			case (s == ScenarioWrongArgument || s == ScenarioUnknownArgument) && !refused:
				return fail("%s: it exited with %d; an invalid argument exits with 2", s, run.ExitCode)
			}
			return pass("a code of the specification's")
		})
		if verdict == Fail {
			return verdict, why
		}
	}
	if len(e.scenarios()) == 0 {
		return notApplicable("nothing was tried")
	}
	return pass("%d runs ended with a code of the specification's", len(e.scenarios()))
}

// invalidCard leaves what a card lacks to the check of the card itself.
const invalidCard = "its model card isn't valid"

func judgeCapabilities(e *evidence) (Verdict, string) {
	return e.onCard(func(c *au.Card) (Verdict, string) {
		switch {
		case len(c.Capabilities) == 0 && e.cardErr != nil:
			return notApplicable(invalidCard)
		case len(c.Capabilities) == 0:
			return fail("the list is empty")
		}
		return pass("it lists %d; whether they are all is for a person to say", len(c.Capabilities))
	})
}

func judgeConfig(e *evidence) (Verdict, string) {
	return e.onCard(func(c *au.Card) (Verdict, string) {
		for _, p := range c.Config {
			switch undescribed := strings.TrimSpace(p.Description) == ""; {
			case undescribed && e.cardErr != nil:
				return notApplicable(invalidCard)
			case undescribed:
				return fail("--%s has no description", p.Name)
			}
		}
		if len(c.Config) == 0 {
			return notApplicable("it has no parameters")
		}
		return pass("all %d parameters are described", len(c.Config))
	})
}
