// Package lazyregexp has regular expressions that are compiled when they are first used.
//
// A program compiles each time it starts what its packages declare, and one call of aod uses few of them: the rest is
// time and memory in which nothing that was asked for happens.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function that returns a regular expression, and compiles it the first time. It panics for one that is
// wrong, like regexp.MustCompile. Programs of tests compile it at once, so that a wrong one can't hide.
func New(expression string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	if isTest(os.Args) {
		compiled()
	}
	return compiled
}

// isTest reports whether a command line is that of a program that `go test` made.
func isTest(args []string) bool {
	return len(args) > 0 && strings.HasSuffix(strings.TrimSuffix(args[0], ".exe"), ".test")
}
