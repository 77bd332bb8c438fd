package check

import (
	"bytes"
	"maps"
	"slices"
)

func judgeNetwork(b *bench) Verdict {
	return b.none("attempts at the network", func(r Run) *int { return r.NetworkAttempts })
}

func judgeFiles(b *bench) Verdict {
	return b.none("files written", func(r Run) *int { return r.FilesWritten })
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
			return fail("%s: stderr is too long to be searched: %d bytes, of which %d were kept", s, run.StderrBytes, len(run.StderrTail))
		}
	}
	if given == 0 {
		return notApplicable("%s was not tried", ScenarioSecret)
	}
	return pass("none of %d texts that it was given is on stderr", given)
}

// echoes reports whether a text is on stderr.
func (r Run) echoes(canary string) bool {
	return bytes.Contains(r.StderrTail, []byte(canary))
}

func judgeDeterministic(b *bench) Verdict {
	return b.on(ScenarioSample, func(first Run, one outcome) Verdict {
		return b.on(ScenarioAgain, func(second Run, two outcome) Verdict {
			switch {
			case first.ExitCode != second.ExitCode:
				return fail("it exited with %d, then with %d", first.ExitCode, second.ExitCode)
			case first.ExitCode != 0 || one.err != nil && two.err != nil:
				return notApplicable("it gave no good output either time")
			case one.err != nil || two.err != nil || !sameJSON(one.doc.JSON(), two.doc.JSON()):
				return fail("the two outputs differ")
			}
			return pass("both outputs are the same")
		})
	})
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
