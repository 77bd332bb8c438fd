package container

import (
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api"
)

// surprise is what a program does that works on its author's machine and not in a sandbox.
type surprise struct {
	words []string // of programs that meet it, in lower case
	hint  string
}

var (
	noNetwork = surprise{
		words: []string{
			"name resolution", "name or service not known", "could not resolve host",
			"no address associated with hostname",
			"nodename nor servname", "getaddrinfo", "network is unreachable", "enetunreach", "no such host",
		},
		hint: "the sandbox has no network: take the data as a file, put it into the image, or set network: bridge in " +
			"agent.yaml",
	}
	readOnly = surprise{
		words: []string{"read-only file system", "erofs"},
		hint: "the sandbox's system is read-only: write scratch files to /workspace or /tmp, and what the caller " +
			"shall get to /io/output",
	}
	noModule = surprise{
		words: []string{"modulenotfounderror", "no module named", "cannot find module", "can't locate "},
		hint: "the image lacks a module that the program imports: install it in the Dockerfile, see " +
			"docs/capsules.md, \"Packages\"",
	}
	inputAsItStands = surprise{
		words: []string{"no such file", "enoent", "cannot open", "can't open"},
		hint: "input files lie in /io/input, not in the working directory: open aod.input_path(NAME), or " +
			"/io/input/NAME",
	}
)

// lastWords is how many lines at the end of a log are taken for the reason of a failure.
const lastWords = 20

// surprises remembers the last surprise that the lines of a program tell of. It is safe for
// concurrent use.
type surprises struct {
	mu    sync.Mutex
	last  *surprise
	since int // lines after it
}

func (s *surprises) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

func (s *surprises) note(found *surprise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since++
	if found != nil {
		s.last, s.since = found, 0
	}
}

// atTheEnd returns the surprise that the last lines tell of, or nil.
func (s *surprises) atTheEnd() *surprise {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since >= lastWords {
		return nil
	}
	return s.last
}

// surpriseIn returns the surprise that a line tells of, or nil. inputs are the names of the
// run's input files. Where the sandbox has a network, a name that can't be resolved is none.
func surpriseIn(line string, bridged bool, inputs func() []string) *surprise {
	line = strings.ToLower(line)
	for _, s := range []*surprise{&noNetwork, &readOnly, &noModule} {
		if expected := s == &noNetwork && bridged; s.in(line) && !expected {
			return s
		}
	}
	if !inputAsItStands.in(line) {
		return nil
	}
	for _, name := range inputs() {
		if name = strings.ToLower(name); strings.Contains(line, name) && !strings.Contains(line, "/io/input/"+name) {
			return &inputAsItStands
		}
	}
	return nil
}

func (s *surprise) in(line string) bool {
	for _, words := range s.words {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}

// mute are the types of errors in Python that tell a program's exit code and nothing else.
var mute = []string{"SystemExit", "CalledProcessError"}

// explain adds to a program's own failure what to do about a surprise. What the program
// reports as its error counts, and only where it reports none its log.
func (x *execution) explain(failure *api.RunError) {
	found := x.surprises.atTheEnd()
	if reported := failure.Type != "" || failure.Hint == ""; reported && !slices.Contains(mute, failure.Type) {
		found = x.surpriseIn(failure.Type + ": " + failure.Message)
	}
	if found != nil {
		failure.Hint = found.hint
	}
}

func (x *execution) surpriseIn(line string) *surprise {
	dir, err := capsuleOf(x.Unit)
	return surpriseIn(line, err == nil && dir.Agent.Network == "bridge", x.inputNames)
}

// inputNames lists the names of the run's input files.
func (x *execution) inputNames() (names []string) {
	for _, ref := range x.Unit.Contract.Input.FileRefs(x.Input.Payload) {
		if ref.Name != "" {
			names = append(names, ref.Name)
		}
	}
	return names
}
