package capsule

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/agent-on-demand/aod/fault"
)

// ignoreFiles are where a build looks for what to leave out; the first that is there
// counts alone, as in Docker.
var ignoreFiles = []string{"Dockerfile.dockerignore", ".dockerignore"}

// alwaysSent is what the builder gets whatever the patterns say, as in Docker: it needs
// them to do its work.
var alwaysSent = map[string]bool{"Dockerfile": true, ".dockerignore": true}

// ignore decides what belongs into a build context.
type ignore struct {
	matcher *patternmatcher.PatternMatcher
}

// verdict is what was decided about a directory; its children start from it.
type verdict = patternmatcher.MatchInfo

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
	patterns, err := ignorefile.ReadAll(bytes.NewReader(raw))
	if err != nil {
		return ignore{}, badContext(name, "it can't be read as patterns: "+fault.Clip(err.Error(), fault.MaxQuoted), "write one short pattern a line")
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return ignore{}, badContext(name, "it holds a pattern that isn't one: "+fault.Clip(err.Error(), fault.MaxQuoted), "see Docker's manual of .dockerignore")
	}
	return ignore{matcher}, nil
}

// excludes reports whether a path is left out, given the verdict on its directory.
func (g ignore) excludes(name string, parent verdict) (bool, verdict, error) {
	out, own, err := g.matcher.MatchesUsingParentResults(name, parent)
	if err != nil {
		return false, own, badContext(".dockerignore", "it holds a pattern that isn't one: "+fault.Clip(err.Error(), fault.MaxQuoted), "see Docker's manual of .dockerignore")
	}
	return out && !alwaysSent[name], own, nil
}

// mayHoldExceptions reports whether a pattern with "!" could take something below an
// excluded directory back in. Where none could, the directory isn't even read.
func (g ignore) mayHoldExceptions(dir string) bool {
	if !g.matcher.Exclusions() {
		return false
	}
	for _, p := range g.matcher.Patterns() {
		if p.Exclusion() && couldMatchBelow(strings.Split(p.String(), "/"), strings.Split(dir, "/")) {
			return true
		}
	}
	return false
}

// couldMatchBelow compares a pattern with a directory part by part. A pattern that ends
// at the directory, or above it, was heeded when the directory itself was judged.
func couldMatchBelow(pattern, dir []string) bool {
	for i, part := range dir {
		if i >= len(pattern) {
			return false
		}
		if strings.Contains(pattern[i], "**") {
			return true
		}
		if ok, err := path.Match(pattern[i], part); err == nil && !ok {
			return false
		}
	}
	return len(pattern) > len(dir)
}

// badContext is the fault for a directory that can't be sent to a builder.
func badContext(name, message, hint string) *fault.Error {
	f := fault.Finding{File: name, Message: message, Hint: hint}
	return fault.New(fault.Capsule, "%s can't be sent to the builder: %s", fault.Quote(name), message).
		WithHint("%s", hint).WithFindings([]fault.Finding{f})
}
