package docker

import (
	"slices"
	"strings"
)

const (
	hintRoot = "the step is not run as root: write USER root before it, and the image's own user after it (USER aod " +
		"in aod/base)"
	hintPip = "the image has no pip: install python3-NAME with apt, or python3-venv, and make a venv; see " +
		"docs/capsules.md, \"Packages\""
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
		"Debian's Python takes packages from apt alone: install python3-NAME with apt, or make a venv and use its " +
			"pip; see docs/capsules.md, \"Packages\"",
	},
	{
		[]string{"ensurepip is not available"},
		"install python3-venv with apt before the venv is made; see docs/capsules.md, \"Packages\"",
	},
	{
		[]string{"pip", "no matching distribution"},
		"check the package's name and version, and whether builds on this engine reach PyPI or the mirror that " +
			"PIP_INDEX_URL names",
	},
	{
		[]string{"unable to locate package"},
		"check the package's name, and run apt-get update in the same RUN, before apt-get install",
	},
}

const hintClassic = "an uploaded unit is built without BuildKit, which bounds no memory and no processors: " +
	"write the Dockerfile without its options, or the operator sets build_memory to 0"

// networkSigns are what programs say when there is no network, in lower case.
var networkSigns = []string{
	"temporary failure resolving", "temporary failure in name resolution", "could not resolve", "couldn't resolve",
	"unable to resolve",
	"name or service not known", "name does not resolve", "network is unreachable", "network unreachable",
	"no such host", "bad address",
	"eai_again", "enotfound", "getaddrinfo", "newconnectionerror", "failed to establish a new connection", "dns error",
	"nodename nor servname",
	"no route to host", "unable to locate package", "no matching distribution found", "connection refused",
	"proxyconnect",
}

// wantedNetwork reports whether the step failed as steps do that have no network.
func (s *buildStep) wantedNetwork() bool {
	if s == nil {
		return false
	}
	said := strings.ToLower(strings.Join(s.tail, "\n"))
	return slices.ContainsFunc(networkSigns, func(sign string) bool { return strings.Contains(said, sign) })
}

// wantedBuildKit reports whether the classic builder refused what only BuildKit knows.
func (s *buildStep) wantedBuildKit(err error) bool {
	said := strings.ToLower(err.Error())
	return strings.Contains(said, "buildkit") || s == nil && strings.Contains(said, "unknown flag")
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
