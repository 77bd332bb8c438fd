package capsule

import (
	"errors"
	"io/fs"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// ignoreFiles are where a build looks for what to leave out; the first that is there
// counts alone, as in Docker.
var ignoreFiles = []string{"Dockerfile.dockerignore", ".dockerignore"}

// alwaysSent is what the builder gets whatever the patterns say, as in Docker: it needs
// them to do its work. What the patterns leave out gets into no image.
var alwaysSent = map[string]bool{"Dockerfile": true, ".dockerignore": true}

// ignore decides what belongs into a build context.
type ignore struct{ safefs.Patterns }

// verdict is what was decided about a directory; its children start from it.
type verdict = safefs.Verdict

func readIgnore(src source) (ignore, error) {
	for _, name := range ignoreFiles {
		raw, err := src.read(name, maxFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return ignore{}, badContext(name, err.Error(), "make it a regular file of patterns")
		}
		return parseIgnore(name, raw)
	}
	return parseIgnore("", nil)
}

func parseIgnore(name string, raw []byte) (ignore, error) {
	patterns, err := safefs.ParsePatterns(raw)
	if err != nil {
		return ignore{}, badContext(name, fault.Clip(err.Error(), fault.MaxQuoted),
			"write one short pattern a line: see Docker's manual of .dockerignore")
	}
	return ignore{patterns}, nil
}

// excludes reports whether a path is left out, given the verdict on its directory.
func (g ignore) excludes(name string, parent verdict) (bool, verdict, error) {
	out, own, err := g.Match(name, parent)
	if err != nil {
		return false, own, badContext(".dockerignore",
			"it holds a pattern that isn't one: "+fault.Clip(err.Error(), fault.MaxQuoted),
			"see Docker's manual of .dockerignore")
	}
	return out, own, nil
}

// badContext is the fault for a directory that can't be sent to a builder.
func badContext(name, message, hint string) *fault.Error {
	f := fault.Finding{File: name, Message: message, Hint: hint}
	return fault.New(fault.Capsule, "%s can't be sent to the builder: %s", fault.Quote(name), message).
		WithHint("%s", hint).WithFindings([]fault.Finding{f})
}
