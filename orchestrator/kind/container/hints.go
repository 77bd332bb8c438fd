package container

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// sandboxHint is what a program does that works on its author's machine and not in a sandbox.
type sandboxHint struct {
	words []string // of programs that meet it, in lower case
	hint  string
}

var (
	noNetwork = sandboxHint{
		words: []string{
			"name resolution", "name or service not known", "could not resolve host",
			"no address associated with hostname",
			"nodename nor servname", "getaddrinfo", "network is unreachable", "enetunreach", "no such host",
		},
		hint: "the sandbox has no network: take the data as a file, put it into the image, or set network: bridge in " +
			"agent.yaml",
	}
	byName = sandboxHint{
		words: noNetwork.words,
		hint: "the sandbox reaches the hosts in egress through the proxy in $HTTPS_PROXY alone: use a client that " +
			"takes it, and no socket of its own; what isn't HTTP or TLS can't go there",
	}
	crlf = sandboxHint{
		words: []string{
			"^m: bad interpreter", "\r: bad interpreter", `\r': no such file`, `\r’: no such file`,
			`$'\r': command not found`,
		},
		hint: "a script has lines that end in CR and LF, as Windows writes them: save it with LF",
	}
	noProgram = sandboxHint{
		words: []string{
			"npx: not found", "uvx: not found", "npx: command not found", "uvx: command not found",
			"no such file or directory: 'npx'", "no such file or directory: 'uvx'", "spawn npx enoent",
		},
		hint: "the image has no npx or uvx, which would fetch the program from a registry that the sandbox doesn't " +
			"reach: install the program in the Dockerfile, and start it by its own name",
	}
	readOnly = sandboxHint{
		words: []string{"read-only file system", "erofs"},
		hint: "the sandbox's system is read-only: write scratch files to /workspace or /tmp, and what the caller " +
			"shall get to /io/output",
	}
	noModule = sandboxHint{
		words: []string{"modulenotfounderror", "no module named", "cannot find module", "can't locate "},
		hint: "the image lacks a module that the program imports: install it in the Dockerfile, see " +
			"docs/capsules.md, \"Packages\"",
	}
	inputAsItStands = sandboxHint{
		words: []string{"no such file", "enoent", "cannot open", "can't open"},
		hint: "input files lie in /io/input, not in the working directory: open aod.input_path(NAME), or " +
			"/io/input/NAME",
	}
)

// lastWords is how many lines at the end of a log are taken for the reason of a failure.
const lastWords = 20

// sandboxHints remembers the last hint that the lines of a program tell of. It is safe for
// concurrent use.
type sandboxHints struct {
	mu    sync.Mutex
	last  *sandboxHint
	since int // lines after it
}

func (s *sandboxHints) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

func (s *sandboxHints) note(found *sandboxHint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since++
	if found != nil {
		s.last, s.since = found, 0
	}
}

// atTheEnd returns the hint that the last lines tell of, or nil.
func (s *sandboxHints) atTheEnd() *sandboxHint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since >= lastWords {
		return nil
	}
	return s.last
}

// surpriseIn returns the hint that a line tells of, or nil. inputs are the names of the
// run's input files. network is the hint of a sandbox without one; nil: it has a network.
func surpriseIn(line string, network *sandboxHint, inputs func() []string) *sandboxHint {
	line = strings.ToLower(line)
	for _, s := range []*sandboxHint{network, &readOnly, &noModule, &crlf, &noProgram} {
		if s != nil && s.in(line) {
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

func (s *sandboxHint) in(line string) bool {
	for _, words := range s.words {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}

// mute are the types of errors in Python that tell a program's exit code and nothing else.
var mute = []string{"SystemExit", "CalledProcessError"}

// hints tell the author of a unit what to do about its failure, by what its program logged.
type hints struct {
	run      *run.Run
	lines    sandboxHints
	lastLine atomic.Pointer[string] // of a wrapped agent's log, cut
}

// note takes a line of the log.
func (h *hints) note(line string) {
	h.lines.note(h.in(line))
	h.noteLastLine(line)
}

// explain adds to a program's own failure what to do about what the sandbox forbids. What the program
// reports as its error counts, and only where it reports none its log.
func (h *hints) explain(failure *api.RunError, code int) {
	found := h.lines.atTheEnd()
	if reported := failure.Type != "" || failure.Hint == ""; reported && !slices.Contains(mute, failure.Type) {
		found = h.in(failure.Type + ": " + failure.Message)
	}
	exit := au.ExitMeaning(code, nil)
	switch crashed := exit.Class == au.ExitSignal; {
	case found != nil:
		failure.Hint = found.hint
	case failure.Type != "" || failure.Hint == "": // it told its reason itself
	case crashed:
		if !strings.Contains(failure.Message, exit.Name) {
			failure.Message += ": it was ended by " + exit.Name
		}
		if !exit.Retry { // nor stopped by somebody
			failure.Hint = cmp.Or(signalHints[exit.Name], crashHint)
		}
	case code == au.ExitNotExecutable:
		failure.Hint = "what it calls is not executable: RUN chmod +x in the Dockerfile, or name its interpreter"
	case code == au.ExitNotFound:
		failure.Hint = "what it calls isn't in the image, or is a script whose first line ends in CR and LF or " +
			"names an interpreter that isn't: its log says which"
	}
}

// signalHints are for programs that a signal ended, and that didn't crash.
var signalHints = map[string]string{
	"SIGPIPE": "it wrote to a pipe or a socket that nobody read any more: its log may not say so",
	"SIGSYS":  "it made a system call that the sandbox forbids: see docs/security.md, and do without it",
}

// crashHint is for a program that the kernel ended for what it did itself.
const crashHint = "the program, or a native library that it loads, crashed: its log may not say so; look in the " +
	"sandbox with `aod shell`, and check that image and library are for this processor"

// hintAtLog says of a program that ran out of time that it waited for its log.
func hintAtLog(failure *api.RunError, waited, limit time.Duration) {
	if failure != nil && failure.Kind == string(api.TimedOut) && waited > limit/4 {
		failure.Hint = fmt.Sprintf("it waited %s for its log: it writes more than limits.log keeps, and the rest is "+
			"read slowly; log less, or to a file in /tmp", waited.Round(time.Second))
	}
}

func (h *hints) in(line string) *sandboxHint {
	network := &noNetwork
	switch dir, err := capsuleOf(h.run.Unit); {
	case err != nil:
	case dir.Agent.Network == "bridge":
		network = nil
	case len(dir.Agent.Egress) > 0:
		network = &byName
	}
	return surpriseIn(line, network, h.inputNames)
}

// inputNames lists the names of the run's input files.
func (h *hints) inputNames() (names []string) {
	for _, ref := range h.run.Unit.Contract.Input.FileRefs(h.run.Input.Payload) {
		if ref.Name != "" {
			names = append(names, ref.Name)
		}
	}
	return names
}

const (
	promptBytes = 512 // of the end of an output that is looked at
	// idleShare is the part of its time for which a program works that waits.
	idleShare = 20
)

// hintAtPrompt says of a wrapped agent that ran out of time if it seems to wait for somebody:
// it hardly used the processor, and what it wrote last ends as a question does.
func (h *hints) hintAtPrompt(failure *api.RunError, ran time.Duration, layout runtime.Layout) {
	usage := h.run.Record.Usage
	if failure == nil || h.run.Unit.Kind != unit.Agent || failure.Kind != string(api.TimedOut) || usage == nil ||
		usage.CPUSeconds > ran.Seconds()/idleShare {
		return
	}
	logged := ""
	if line := h.lastLine.Load(); line != nil {
		logged = *line
	}
	if asks(lastBytes(layout)) || asks(logged) {
		failure.Hint = "it seems to wait for an answer: use input: stdin, or the option with which it asks nobody"
	}
}

// noteLastLine remembers the end of a line of a wrapped agent's log.
func (h *hints) noteLastLine(line string) {
	if h.run.Unit.Kind == unit.Agent {
		h.lastLine.Store(new(strings.Clone(line[max(0, len(line)-promptBytes):])))
	}
}

// lastBytes returns the end of what the program printed.
func lastBytes(layout runtime.Layout) string {
	f, err := layout.OpenStdout()
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // read only
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	raw := make([]byte, min(size, promptBytes))
	if _, err := f.ReadAt(raw, size-int64(len(raw))); err != nil {
		return ""
	}
	return string(raw)
}

// asks reports whether a text ends as a prompt does.
func asks(text string) bool {
	line := strings.TrimRight(text, " \t\r\n")
	line = strings.TrimRight(line[strings.LastIndexByte(line, '\n')+1:], " )]}")
	for _, end := range []string{"?", ":", ">", "y/n", "yes/no"} {
		if strings.HasSuffix(strings.ToLower(line), end) {
			return true
		}
	}
	return false
}
