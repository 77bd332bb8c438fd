package docker

import (
	"regexp"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// limitRefusals are the words with which engines and their runtimes refuse to set a limit.
var limitRefusals = []struct {
	words func() *regexp.Regexp // of the message in lower case
	limit string
	hint  string
}{
	{
		lazyregexp.New(`memory limit|memory\.(limit_in_bytes|memsw|max|swap)`), "memory limit (limits.memory)",
		"give it at least 16 MiB, and no more than the engine's machine has",
	},
	{
		lazyregexp.New(`cpu\.(cfs|max)|nanocpus|range of cpus|cpu cfs`), "limit of processors (limits.cpus)",
		"give it at least 0.01; the engine's cgroups must have the controller cpu",
	},
	{
		lazyregexp.New(`pids\.max|pids limit`), "limit of processes (limits.pids)",
		"give it fewer; the engine's cgroups must have the controller pids",
	},
	{
		lazyregexp.New(`rlimit`), "limits of open files and of a file's size",
		"the engine may not set them: raise the limits of its own service (LimitNOFILE, LimitFSIZE)",
	},
}

// refusedLimit is the fault of a limit that the engine can't set, or nil. text is err's message
// in lower case.
func refusedLimit(text string, err error) error {
	for _, r := range limitRefusals {
		if r.words().MatchString(text) {
			return fault.Wrap(fault.Unsupported, err, "the engine can't set the %s: it said %q", r.limit,
				reasonOf(err)).WithHint("%s", r.hint)
		}
	}
	return nil
}

// reasonOf is the end of what the engine said, without its paths.
func reasonOf(err error) string {
	words := strings.Fields(strings.TrimSuffix(err.Error(), ": unknown"))
	for i, word := range words {
		if strings.ContainsRune(word, '/') {
			words[i] = "…"
		}
	}
	const most = 160 // bytes
	text := strings.Join(words, " ")
	for len(text) > most {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			return bounded(text, most)
		}
		text = rest
	}
	return text
}
