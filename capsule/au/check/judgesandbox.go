package check

import (
	"bytes"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

func judgeNetwork(b *bench) Verdict {
	return worst(
		b.none("attempts at the network", func(r Run) *int { return r.NetworkAttempts }),
		b.none("attempts to listen", func(r Run) *int { return r.Listened }),
	)
}

func judgeFiles(b *bench) Verdict {
	return worst(
		b.none("attempts to write to a file, also those that were refused or undone",
			func(r Run) *int { return r.WritesTried }),
		b.none("files written", func(r Run) *int { return r.FilesWritten }),
	)
}

// worst is the first that failed, else the first that isn't applicable, else the first.
func worst(verdicts ...Verdict) Verdict {
	for _, mark := range []Mark{Fail, NotApplicable} {
		if i := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Mark == mark }); i >= 0 {
			return verdicts[i]
		}
	}
	return verdicts[0]
}

func judgeLeaks(b *bench) Verdict {
	return b.none("processes left behind", func(r Run) *int { return r.ProcessesLeft })
}

func judgeDownload(b *bench) Verdict {
	return b.onModel(ScenarioMissingModel, func(run Run, _ outcome) Verdict {
		switch {
		case run.NetworkAttempts == nil:
			return notApplicable("attempts at the network were not counted")
		case *run.NetworkAttempts > 0:
			return fail("it tried the network %d times", *run.NetworkAttempts)
		case run.ExitCode == 0:
			return fail("it exited with 0, without the model that it was given")
		}
		return pass("it gave up without trying the network")
	})
}

func judgeSecrets(b *bench) Verdict {
	given := 0
	for _, s := range slices.Sorted(maps.Keys(b.Runs)) {
		run := b.Runs[s]
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

func judgeDeterministic(b *bench) Verdict {
	return b.on(ScenarioSample, func(first Run, one outcome) Verdict {
		times := 1
		for _, s := range alike[1:] {
			verdict := b.on(s,
				func(again Run, other outcome) Verdict { return sameResult(s, first, again, one, other) })
			if verdict.Mark == Fail {
				return verdict
			}
			if verdict.Mark == Pass {
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
func sameResult(s Scenario, first, again Run, one, other outcome) Verdict {
	switch {
	case first.ExitCode != again.ExitCode:
		return fail("it exited with %d, then with %d (%s)", first.ExitCode, again.ExitCode, s)
	case first.ExitCode != 0 || one.err != nil && other.err != nil:
		return notApplicable("it gave no good output either time")
	case one.err != nil || other.err != nil || !sameJSON(one.doc.JSON(), other.doc.JSON()):
		return fail("the outputs differ (%s)", s)
	}
	return pass("the same output")
}

func judgeTime(b *bench) Verdict {
	limit := b.TimeLimit
	if limit == 0 {
		limit = DefaultTimeLimit
	}
	return b.on(ScenarioSample, func(run Run, _ outcome) Verdict {
		if run.Duration > limit {
			return fail("it took %s, the limit is %s", run.Duration, limit)
		}
		return pass("it took %s, the limit is %s", run.Duration, limit)
	})
}

func judgeMemory(b *bench) Verdict {
	var peak int64
	observed := 0
	for _, s := range b.scenarios() {
		run := b.Runs[s]
		if run.OutOfMemory && s != ScenarioLittleMemory { // it is meant to run out of memory
			return fail("%s: it was killed for its memory", s)
		}
		if run.PeakMemory != nil {
			peak = max(peak, *run.PeakMemory)
			observed++
		}
	}
	switch {
	case b.MemoryLimit == 0:
		return notApplicable("its memory had no limit")
	case peak >= b.MemoryLimit:
		return fail("it took %d bytes, all that it may have", peak)
	case observed == 0 || observed < len(b.scenarios()):
		return notApplicable("its memory was measured in %d of %d runs only", observed, len(b.scenarios()))
	}
	return pass("it took %d bytes at most, the limit is %d", peak, b.MemoryLimit)
}
