package api

import (
	"regexp"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxName is the longest name: it must fit where a host name or a label does.
const maxName = 63

var (
	nameRule    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`) })
	notNameRune = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9._-]+`) })
	manySeps    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[._-]{2,}`) })
)

// CheckUnitName returns nil for a string that can be a unit's name, and so a part of an
// image tag: lower-case letters and digits, joined by single '.', '_' or '-', at most
// 63 bytes. Otherwise it returns an Input fault whose hint suggests a name near it.
func CheckUnitName(name string) error {
	if problem := nameProblem(name); problem != "" {
		return fault.New(fault.Input, "%s", problem).WithHint("%s", nameHint(name))
	}
	return nil
}

// nameProblem says what is wrong with a name, "" if nothing is.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > maxName:
		return "the name " + fault.Quote(name) + " is longer than 63 characters"
	case !nameRule().MatchString(name):
		return "the name " + fault.Quote(name) + " can't be an image tag"
	}
	return ""
}

func nameHint(name string) string {
	const rule = "lower-case letters and digits, joined by single '.', '_' or '-'"
	if s := SuggestUnitName(name); s != "" {
		return "use " + rule + ", for example " + s
	}
	return "use " + rule
}

// SuggestUnitName makes a valid name out of one that isn't, or "" when nothing is left.
func SuggestUnitName(name string) string {
	if len(name) > 4*maxName {
		name = name[:4*maxName]
	}
	s := notNameRune().ReplaceAllString(strings.ToLower(name), "-")
	s = manySeps().ReplaceAllString(s, "-")
	if s = strings.Trim(s, "._-"); len(s) > maxName {
		s = strings.Trim(s[:maxName], "._-")
	}
	return s
}

// CheckScheduleName returns nil for a string that can be a schedule's name: one that could be a
// unit's, see CheckUnitName. Otherwise it returns an Input fault.
func CheckScheduleName(name string) error {
	if len(name) <= maxName && nameRule().MatchString(name) {
		return nil
	}
	return fault.New(fault.Input, "%s is no name of a schedule", fault.Quote(name)).
		WithHint("use lower-case letters and digits, joined by single '.', '_' or '-', at most %d", maxName)
}
