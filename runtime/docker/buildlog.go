package docker

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/runtime"
)

// Bounds of what is kept of a build; its output is written by strangers.
const (
	lineLimit    = 4096  // bytes of a line; longer ones come in pieces
	nameLimit    = 200   // bytes of a step's name
	stepLimit    = 10000 // steps that are followed
	tailLines    = 20    // lines of the failing step that are shown
	tailLineSize = 512
	reasonLimit  = 500
)

// stepError is the engine's word that a build failed, as opposed to a stream that
// could not be read.
type stepError struct{ text string }

func (e *stepError) Error() string { return e.text }

// buildLog turns either builder's progress stream into events.
type buildLog struct {
	progress func(runtime.BuildEvent)
	imageID  string
	steps    map[string]*buildStep
	current  *buildStep // of the classic builder
	failed   *buildStep // the first that failed by its own fault
}

// buildStep is one step under way.
type buildStep struct {
	id, name       string
	started, ended bool
	cached         bool
	partial        string // of a line
	tail           []string
}

func newBuildLog(progress func(runtime.BuildEvent)) *buildLog {
	return &buildLog{progress: progress, steps: map[string]*buildStep{}}
}

// buildMessage is one message of the stream. BuildKit's progress stands in Aux under
// an id of its own; the classic builder's is text in Stream.
type buildMessage struct {
	ID     string          `json:"id"`
	Stream string          `json:"stream"`
	Error  string          `json:"error"`
	Aux    json.RawMessage `json:"aux"`
}

// read follows the stream to its end. A *stepError is the build's own failure.
func (l *buildLog) read(r io.Reader) error {
	messages := newMessages(r)
	for {
		var m buildMessage
		err := messages.next(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.take(m)
		}
		if err != nil {
			return err
		}
	}
	l.endClassicStep(runtime.StepDone)
	if l.imageID == "" {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (l *buildLog) take(m buildMessage) error {
	switch {
	case m.Error != "":
		failed := &stepError{m.Error}
		if !failed.lostImage() { // else the step may be begun again
			l.endClassicStep(runtime.StepFailed)
		}
		return failed
	case m.ID == "moby.buildkit.trace":
		l.takeTrace(m.Aux)
	case len(m.Aux) > 0:
		var result struct{ ID string }
		if json.Unmarshal(m.Aux, &result) == nil && result.ID != "" {
			l.imageID = result.ID
		}
	case m.Stream != "":
		l.takeClassic(m.Stream)
	}
	return nil
}

// takeTrace reports a piece of BuildKit's progress. One that can't be read is only
// progress that isn't seen.
func (l *buildLog) takeTrace(aux json.RawMessage) {
	var encoded []byte // base64
	if json.Unmarshal(aux, &encoded) != nil {
		return
	}
	status, err := decodeStatus(encoded)
	if err != nil {
		return
	}
	for _, v := range status.vertexes {
		l.takeVertex(v)
	}
	for _, out := range status.logs {
		if step := l.steps[out.vertex]; step != nil {
			l.output(step, string(out.text))
		}
	}
}

func (l *buildLog) takeVertex(v vertex) {
	step := l.step(v.digest, v.name)
	if step == nil {
		return
	}
	if v.started && !v.cached {
		l.begin(step)
	}
	switch {
	case v.err != "":
		// The steps beside a failing one end as cancelled.
		if l.failed == nil && !strings.Contains(v.err, "context canceled") {
			l.failed = step
		}
		l.end(step, runtime.StepFailed)
	case v.cached && v.completed:
		l.end(step, runtime.StepCached)
	case v.completed:
		l.end(step, runtime.StepDone)
	}
}

// step returns a step by its id, or nil where there are too many to follow.
func (l *buildLog) step(id, name string) *buildStep {
	step := l.steps[id]
	if step == nil && len(l.steps) < stepLimit {
		name, _, _ = strings.Cut(name, "\n")
		step = &buildStep{id: id, name: bounded(name, nameLimit)}
		l.steps[id] = step
	}
	return step
}

func (l *buildLog) begin(step *buildStep) {
	if !step.started {
		step.started = true
		l.emit(step, runtime.StepStarted, "")
	}
}

func (l *buildLog) end(step *buildStep, state runtime.StepState) {
	if step.ended {
		return
	}
	if step.partial != "" {
		l.line(step, step.partial)
		step.partial = ""
	}
	step.ended = true
	l.emit(step, state, "")
}

// output splits a step's output into lines of bounded length.
func (l *buildLog) output(step *buildStep, text string) {
	text = step.partial + text
	for {
		line, rest, found := strings.Cut(text, "\n")
		if len(line) >= lineLimit {
			line, rest, found = line[:lineLimit], text[lineLimit:], true
		}
		if !found {
			step.partial = line
			return
		}
		l.line(step, line)
		text = rest
	}
}

func (l *buildLog) line(step *buildStep, line string) {
	line = strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "")
	if len(step.tail) == tailLines {
		step.tail = step.tail[1:]
	}
	step.tail = append(step.tail, bounded(line, tailLineSize))
	l.emit(step, runtime.StepLog, line)
}

func (l *buildLog) emit(step *buildStep, state runtime.StepState, line string) {
	l.progress(runtime.BuildEvent{Step: step.id, Name: step.name, State: state, Log: line})
}

var (
	fromStep     = lazyregexp.New(`^\[(?:\S+ )?\d+/\d+\] FROM (?:--\S+ )*(\S+)`)
	metadataStep = lazyregexp.New(`^\[internal\] load metadata for (\S+)`)
	exitCode     = lazyregexp.New(`(?:exit code: |non-zero code: )(\d{1,3})$`)
)

// baseImage returns the image that the step was to fetch, or "" for other steps.
func (s *buildStep) baseImage() string {
	if s == nil {
		return ""
	}
	for _, pattern := range []*regexp.Regexp{fromStep(), metadataStep()} {
		if m := pattern.FindStringSubmatch(s.name); m != nil {
			return strings.TrimPrefix(strings.TrimPrefix(m[1], "docker.io/"), "library/")
		}
	}
	return ""
}

// buildReason is the end of the engine's message: what came before it is the names
// of the engine's own parts.
func buildReason(text string) string {
	if m := exitCode().FindStringSubmatch(text); m != nil {
		return "exit code " + m[1]
	}
	if strings.Contains(text, "failed to read dockerfile") ||
		strings.Contains(text, "Cannot locate specified Dockerfile") {
		return "there is no such Dockerfile in the build context"
	}
	for _, prefix := range []string{
		"failed to solve with frontend dockerfile.v0: ", "failed to solve: ",
		"failed to create LLB definition: ",
	} {
		text = strings.TrimPrefix(text, prefix)
	}
	return bounded(text, reasonLimit)
}
