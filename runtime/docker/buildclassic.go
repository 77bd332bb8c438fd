package docker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/runtime"
)

var (
	// classicStep announces a step; Podman, which speaks the same, in capitals.
	classicStep = lazyregexp.New(`^(?i:step) (\d{1,6})/(\d{1,6}) ?: (.*)`)
	// classicNoise is the builder's own talk between the output of the steps.
	classicNoise = lazyregexp.New(`^(?: ---> .*|Removing intermediate container [0-9a-f]+|Successfully (?:built|` +
		`tagged) \S+)\n?$`)
)

// cachedTries is how often the classic builder may look for a step in its cache, before it has
// to do without.
const cachedTries = 3

// lostImage reports whether the classic builder's search of its cache met an image that was being
// removed: it lists the images that could be meant, asks for each, and gives up where one of them
// has gone.
func (e *stepError) lostImage() bool { return strings.HasPrefix(e.text, "unable to find image ") }

var errLostImage = errors.New("the builder's search of its cache met an image that was being removed")

// takeClassic reports one message of the classic builder. What the builder says
// comes in messages of its own, and what the step prints in others. A step that
// prints the builder's words deceives its author's screen, nothing else.
func (l *buildLog) takeClassic(text string) {
	if m := classicStep().FindStringSubmatch(text); m != nil {
		l.endClassicStep(runtime.StepDone)
		command, _, _ := strings.Cut(m[3], "\n")
		if l.current = l.step(m[1], fmt.Sprintf("[%s/%s] %s", m[1], m[2], command)); l.current != nil {
			l.begin(l.current)
		}
		return
	}
	step := l.current
	switch {
	case step == nil, step.partial == "" && strings.TrimSpace(text) == "" && len(step.tail) == 0:
	case strings.HasPrefix(text, " ---> Using cache"):
		step.cached = true
	case step.partial == "" && classicNoise().MatchString(text):
	default:
		l.output(step, text)
	}
}

// endClassicStep ends the step before the next one, or the last.
func (l *buildLog) endClassicStep(state runtime.StepState) {
	step := l.current
	if step == nil {
		return
	}
	l.current = nil
	switch {
	case state == runtime.StepFailed:
		l.failed = step
	case step.cached:
		state = runtime.StepCached
	}
	l.end(step, state)
}
