package safefs

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Patterns say which names are left out, as the lines of a .dockerignore do: the last one that
// matches counts, and "!" takes back in.
type Patterns struct {
	matcher *patternmatcher.PatternMatcher
}

// Verdict is what was decided about a directory; what is in it starts from that. The zero
// Verdict is that of the top.
type Verdict = patternmatcher.MatchInfo

// ParsePatterns reads a file of patterns, one a line. The error says
// what is wrong with it, in words for its author.
func ParsePatterns(raw []byte) (Patterns, error) {
	lines, err := ignorefile.ReadAll(bytes.NewReader(raw))
	if err != nil {
		return Patterns{}, fmt.Errorf("it can't be read as patterns: %w", err)
	}
	matcher, err := patternmatcher.New(lines)
	if err != nil {
		return Patterns{}, fmt.Errorf("it holds a pattern that isn't one: %w", err)
	}
	return Patterns{matcher}, nil
}

// Match reports whether a name is left out, given the verdict on its directory. The error is
// that of a pattern that isn't one.
func (p Patterns) Match(name string, parent Verdict) (out bool, own Verdict, err error) {
	return p.matcher.MatchesUsingParentResults(name, parent)
}

// MayHoldExceptions reports whether a pattern with "!" could take something below a directory
// that is left out back in. Where none could, the directory needn't even be read.
func (p Patterns) MayHoldExceptions(dir string) bool {
	if !p.matcher.Exclusions() {
		return false
	}
	for _, one := range p.matcher.Patterns() {
		if one.Exclusion() && couldMatchBelow(strings.Split(one.String(), "/"), strings.Split(dir, "/")) {
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
