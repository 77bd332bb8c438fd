package capsule

import (
	"path"
	"slices"
	"strings"
)

// settings are the instructions that change no file of an image.
var settings = []string{
	"CMD", "ENTRYPOINT", "ENV", "USER", "EXPOSE", "LABEL", "STOPSIGNAL", "HEALTHCHECK", "ARG",
	"MAINTAINER",
}

// copiedTo is Capsule.CopiedTo of the instructions; "" is none.
func copiedTo(instructions [][]string) (dir string) {
	for _, words := range instructions {
		name := strings.ToUpper(words[0])
		switch {
		case dir != "" && !slices.Contains(settings, name):
			return ""
		case name == "ONBUILD" || name == "RUN" && strings.HasPrefix(strings.Join(words[1:], " "), "--"):
			return "" // which may read the context
		case name != "COPY" && name != "ADD" || fromElsewhere(words):
			continue
		}
		if dir = wholeCopy(words); dir == "" {
			return ""
		}
	}
	return dir
}

// fromElsewhere reports whether an instruction copies from another stage or image.
func fromElsewhere(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--from=") })
}

// wholeCopy returns the target of `COPY . /target`.
func wholeCopy(words []string) string {
	if len(words) != 3 || !strings.EqualFold(words[0], "COPY") || words[1] != "." && words[1] != "./" {
		return ""
	}
	if target := words[2]; path.IsAbs(target) && !strings.ContainsAny(target, `$\"'`) {
		return path.Clean(target)
	}
	return ""
}
