package contract

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
)

// Stage is a directory inside a sandbox that file references are relative to.
type Stage string

// The stages. AnyStage stands where the stage isn't known: the absolute form of each
// of them is taken then.
const (
	StageInput    Stage = "/io/input"
	StageOutput   Stage = "/io/output"
	StageOutgoing Stage = "/io/handoff/outgoing"
	StageIncoming Stage = "/io/handoff/incoming"
	AnyStage      Stage = ""
)

var stages = []Stage{StageInput, StageOutput, StageOutgoing, StageIncoming}

// CleanName returns the relative name, with slashes, that a file reference stands
// for. It takes subdirectories and the stage's own absolute form ("/io/output/x" is
// "x"). It refuses, with an Input fault, whatever could mean another file to
// another reader: other absolute names, "..", backslashes, control characters,
// invalid UTF-8, an empty name, a directory, more than 255 bytes in a part, 1024 in
// all, or 16 parts.
func CleanName(name string, stage Stage) (string, error) {
	if problem, hint := unfit(name); problem != "" {
		return "", badName(problem, hint)
	}
	relative := within(name, stage)
	if strings.HasPrefix(relative, "/") {
		return "", badName("the file name is absolute", "name the file relative to "+stage.String()+
			", such as report.pdf")
	}
	parts := strings.Split(relative, "/")
	for _, part := range parts {
		if part == ".." {
			return "", badName(`the file name has ".." in it`, "name the file relative to "+stage.String()+
				", without leaving it")
		}
		if len(part) > maxPartBytes {
			return "", badName("a part of the file name is longer than 255 bytes", "shorten it")
		}
	}
	if last := parts[len(parts)-1]; last == "" || last == "." {
		return "", badName("the file name names a directory", "name a file in it")
	}
	clean := path.Clean(relative)
	if strings.Count(clean, "/") >= maxNameParts {
		return "", badName("the file lies more than 16 directories deep", "put it further up")
	}
	return clean, nil
}

// String is the stage as it reads in a sentence.
func (s Stage) String() string {
	if s == AnyStage {
		return "its directory under /io"
	}
	return string(s)
}

// FreeName returns a name for a file among others. Where it is taken, the base gets a directory of its own: 2, 3, …
func FreeName(name, base string, taken func(string) bool) string {
	for n := 2; taken(name); n++ {
		name = path.Join(strconv.Itoa(n), base)
	}
	return name
}

// unfit says what is wrong with a name whatever its stage.
func unfit(name string) (problem, hint string) {
	switch {
	case name == "":
		return "the file name is empty", "name a file, or leave the field out"
	case len(name) > maxNameBytes:
		return "the file name is longer than 1024 bytes", "shorten it"
	case !utf8.ValidString(name):
		return "the file name is not valid UTF-8", "rename the file"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the file name has a control character in it", "rename the file"
	case strings.Contains(name, `\`):
		return "the file name has a backslash in it", "separate directories with /"
	}
	return "", ""
}

// within takes the absolute form of the stage for the relative one.
func within(name string, stage Stage) string {
	for _, s := range stages {
		if stage != AnyStage && stage != s {
			continue
		}
		if rest, ok := strings.CutPrefix(name, string(s)+"/"); ok {
			return strings.TrimLeft(rest, "/")
		}
	}
	return name
}

func badName(problem, hint string) error {
	return fault.New(fault.Input, "%s", problem).WithHint("%s", hint)
}
