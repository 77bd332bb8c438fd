package check

import (
	"bytes"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

func judgeNetwork(e *evidence) (Verdict, string) {
	return e.noneOf(
		// for a missing model judgeDownload tells of them
		figure{"attempts at the network", func(r Run) *int { return r.NetworkAttempts }, ScenarioMissingModel},
		figure{"attempts to listen", func(r Run) *int { return r.Listened }, ""},
	)
}

func judgeFiles(e *evidence) (Verdict, string) {
	return e.noneOf(
		figure{
			"attempts to write to a file, also those that were refused or undone",
			func(r Run) *int { return r.WritesTried }, "",
		},
		figure{"files written", func(r Run) *int { return r.FilesWritten }, ""},
	)
}

// noneOf wants none of several figures. It is the first that failed, else the first that isn't applicable, else the
// first.
func (e *evidence) noneOf(figures ...figure) (verdict Verdict, why string) {
	for _, figure := range figures {
		each, reason := e.none(figure)
		if verdict == "" || each == Fail && verdict != Fail || each == NotApplicable && verdict == Pass {
			verdict, why = each, reason
		}
	}
	return verdict, why
}

func judgeLeaks(e *evidence) (Verdict, string) {
	return e.none(figure{"processes left behind", func(r Run) *int { return r.ProcessesLeft }, ""})
}

func judgeDownload(e *evidence) (Verdict, string) {
	run, tried := e.Runs[ScenarioMissingModel]
	if !tried || e.card != nil && !e.card.NeedsModel() || run.NetworkAttempts == nil {
		return e.onModel(ScenarioMissingModel, func(Run, outcome) (Verdict, string) {
			return notApplicable("attempts at the network were not counted")
		})
	}
	if *run.NetworkAttempts > 0 { // however it ended
		return fail("it tried the network %d times", *run.NetworkAttempts)
	}
	return pass("it did not try the network")
}

func judgeSecrets(e *evidence) (Verdict, string) {
	given := 0
	for _, s := range slices.Sorted(maps.Keys(e.Runs)) {
		run := e.Runs[s]
		canaries := slices.DeleteFunc(slices.Clone(run.Canaries), func(c string) bool { return c == "" })
		given += len(canaries)
		if slices.ContainsFunc(canaries, run.echoes) {
			return fail("%s: stderr repeats what the unit was given", s)
		}
		if len(canaries) > 0 && run.StderrBytes > int64(len(run.StderrTail)) {
			return fail("%s: stderr is too long to be searched: %d bytes, of which %d were kept", s, run.StderrBytes,
				len(run.StderrTail))
		}
	}
	if given == 0 {
		return notApplicable("%s was not tried", ScenarioSecret)
	}
	return pass("none of %d texts that it was given is on stderr", given)
}

// leakBytes are so few of a canary that they were not printed by chance, and so many as
// messages show that cut what they repeat.
const leakBytes = 8

// echoes reports whether a text, or a part of it, is on stderr: as it is, or in hexadecimal.
func (r Run) echoes(canary string) bool {
	said := bytes.ToLower(r.StderrTail)
	for i := 0; i+leakBytes <= len(canary); i++ {
		part := strings.ToLower(canary[i : i+leakBytes])
		if bytes.Contains(said, []byte(part)) ||
			bytes.Contains(said, hex.AppendEncode(nil, []byte(canary[i:i+leakBytes]))) {
			return true
		}
	}
	return len(canary) < leakBytes && bytes.Contains(r.StderrTail, []byte(canary))
}

func judgeDeterministic(e *evidence) (Verdict, string) {
	return e.on(ScenarioSample, func(first Run, one outcome) (Verdict, string) {
		times := 1
		for _, s := range alike[1:] {
			verdict, why := e.on(s,
				func(again Run, other outcome) (Verdict, string) { return sameResult(s, first, again, one, other) })
			if verdict == Fail {
				return verdict, why
			}
			if verdict == Pass {
				times++
			}
		}
		if times == 1 {
			return notApplicable("it gave no good output twice")
		}
		return pass("all %d outputs are the same", times)
	})
}

// sameResult compares a run with the first one.
func sameResult(s Scenario, first, again Run, one, other outcome) (Verdict, string) {
	switch {
	case first.ExitCode != 0 || one.err != nil:
		return notApplicable("it gave no good output")
	case first.ExitCode != again.ExitCode:
		return fail("it exited with %d, then with %d (%s)", first.ExitCode, again.ExitCode, s)
	case other.err != nil:
		return notApplicable("it gave no good output both times")
	case !sameJSON(one.doc.JSON(), other.doc.JSON()):
		return fail("the outputs differ (%s)", s)
	}
	return pass("the same output")
}

func judgeTime(e *evidence) (Verdict, string) {
	limit := e.TimeLimit
	if limit == 0 {
		limit = DefaultTimeLimit
	}
	for _, s := range append(slices.Clone(alike), e.scenarios()...) {
		if run := e.Runs[s]; run.TimedOut && judgeOf(s, run) == timeID {
			return fail("%s: %s", s, broken(run))
		}
	}
	return e.on(ScenarioSample, func(run Run, _ outcome) (Verdict, string) {
		if run.Duration > limit {
			return fail("it took %s, the limit is %s", run.Duration, limit)
		}
		return pass("it took %s, the limit is %s", run.Duration, limit)
	})
}

func judgeMemory(e *evidence) (Verdict, string) {
	var peak int64
	observed := 0
	for _, s := range e.scenarios() {
		run := e.Runs[s]
		if run.OutOfMemory {
			return notApplicable("%s: %s", s, broken(run))
		}
		if run.PeakMemory != nil {
			peak = max(peak, *run.PeakMemory)
			observed++
		}
	}
	switch {
	case e.MemoryLimit == 0:
		return notApplicable("its memory had no limit")
	case peak >= e.MemoryLimit:
		return fail("it took %d bytes, all that it may have", peak)
	case observed == 0 || observed < len(e.scenarios()):
		return notApplicable("its memory was measured in %d of %d runs only", observed, len(e.scenarios()))
	}
	return pass("it took %d bytes at most, the limit is %d", peak, e.MemoryLimit)
}
