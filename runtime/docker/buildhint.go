package docker

import "strings"

const (
	hintRoot = "the step is not run as root: write USER root before it, and the image's own user after it (USER aod in aod/base)"
	hintPip  = "the image has no pip: install python3-NAME with apt, or python3-venv, and make a venv; see docs/capsules.md, \"Packages\""
)

// buildHints say what to do about the failures of a step that its own words don't explain to
// everybody. The first whose words all stand in the step's command or its last lines counts.
var buildHints = []struct {
	words []string // in lower case
	hint  string
}{
	{[]string{"apt-get", "permission denied"}, hintRoot},
	{[]string{"apt install", "permission denied"}, hintRoot},
	{[]string{"pip install", "permission denied"}, hintRoot},
	{[]string{"pip: not found"}, hintPip},
	{[]string{"pip3: not found"}, hintPip},
	{[]string{"pip: command not found"}, hintPip},
	{[]string{"no module named pip"}, hintPip},
	{
		[]string{"externally-managed-environment"},
		"Debian's Python takes packages from apt alone: install python3-NAME with apt, or make a venv and use its pip; see docs/capsules.md, \"Packages\"",
	},
	{
		[]string{"ensurepip is not available"},
		"install python3-venv with apt before the venv is made; see docs/capsules.md, \"Packages\"",
	},
	{
		[]string{"pip", "no matching distribution"},
		"check the package's name and version, and whether builds on this engine reach PyPI or the mirror that PIP_INDEX_URL names",
	},
	{
		[]string{"unable to locate package"},
		"check the package's name, and run apt-get update in the same RUN, before apt-get install",
	},
}

// hint says what to do about the failure of a step, "" where its own words have to do.
func (s *buildStep) hint() string {
	said := strings.ToLower(s.name + "\n" + strings.Join(s.tail, "\n"))
	for _, h := range buildHints {
		if containsAll(said, h.words) {
			return h.hint
		}
	}
	return ""
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
