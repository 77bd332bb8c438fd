package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

func judgeDescribe(b *bench) Verdict {
	first, tried := b.Runs[ScenarioDescribe]
	if tried && first.notStarted() {
		return fail("%s", crash(first))
	}
	return b.on(ScenarioDescribe, func(_ Run, out outcome) Verdict {
		for _, s := range describes {
			if verdict := b.describes(s, out); verdict.Mark == Fail {
				return verdict
			}
		}
		return pass("it printed one JSON document and exited with 0, its stdin still open, and the same each time")
	})
}

// describes judges one time that the unit was asked for its card, of which the first gave a
// document.
func (b *bench) describes(s Scenario, first outcome) Verdict {
	return b.on(s, func(run Run, out outcome) Verdict {
		switch problem := crash(run); {
		case problem != "":
			return fail("%s", problem)
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

func judgeCard(b *bench) Verdict {
	return b.on(ScenarioDescribe, func(Run, outcome) Verdict {
		if b.cardErr == nil {
			return pass("all of its fields keep the schema")
		}
		return fail("%s", cardProblems(b.cardErr))
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

func judgeStdin(b *bench) Verdict {
	return b.on(ScenarioSample, func(run Run, _ outcome) Verdict {
		switch {
		case run.StdinBytes == 0 || run.StdinTaken == nil:
			return notApplicable("it was not counted how much it took of an input")
		case *run.StdinTaken < run.StdinBytes:
			return fail("it took %d of %d bytes", *run.StdinTaken, run.StdinBytes)
		case run.ExitCode != 0:
			return fail("it took all bytes, but exited with %d, expected 0", run.ExitCode)
		}
		return pass("it took all %d bytes", run.StdinBytes)
	})
}

func judgeStdout(b *bench) Verdict {
	good := 0
	for _, s := range b.scenarios() {
		if b.Runs[s].ExitCode != 0 || b.Runs[s].TimedOut {
			continue
		}
		if err := b.outputs[s].err; err != nil {
			return fail("%s: %s", s, outputProblem(err))
		}
		good++
	}
	if good == 0 {
		return notApplicable("no run exited with 0")
	}
	return pass("one JSON document in each of %d runs that exited with 0", good)
}

func judgeErrorsApart(b *bench) Verdict {
	return b.onFailed("stdout was empty", func(run Run) string {
		if n := len(bytes.TrimSpace(run.Stdout)); n > 0 {
			return fmt.Sprintf(" and printed %d bytes on stdout", n)
		}
		return ""
	})
}

// onFailed judges every run in which the unit's exit code wasn't 0. problem goes on with what is
// wrong with one, or is "".
func (b *bench) onFailed(good string, problem func(Run) string) Verdict {
	failed := 0
	for _, s := range b.scenarios() {
		run := b.Runs[s]
		if run.ExitCode == 0 || run.TimedOut {
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

func judgeExitCodes(b *bench) Verdict {
	for _, s := range b.scenarios() {
		run := b.Runs[s]
		switch problem := crash(run); {
		case run.TimedOut:
			return fail("%s: it was still running when its time was up", s)
		case problem != "" && s != ScenarioLittleMemory: // it has a check of its own
			return fail("%s: %s", s, problem)
		case slices.Contains(alike, s) && run.ExitCode != 0:
			return fail("%s: it exited with %d, expected 0", s, run.ExitCode)
		case (s == ScenarioWrongArgument || s == ScenarioUnknownArgument) && run.ExitCode == 1:
			return fail("%s: it exited with 1; an invalid argument exits with 2", s)
		}
	}
	if len(b.scenarios()) == 0 {
		return notApplicable("nothing was tried")
	}
	return pass("%d runs ended with a code of the specification's", len(b.scenarios()))
}
