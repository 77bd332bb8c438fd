package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const frameTime = 100 * time.Millisecond

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// view shows progress on stderr: lines that stay, and on a terminal a last line that says
// what is being waited for.
type view struct {
	out   *output
	unit  string
	quiet bool

	mu     sync.Mutex
	status string // what is in progress; "" is nothing
	since  time.Time
	steps  map[string]step
	built  bool // something was built
	frame  int
	drawn  int // lines
	held   int // how many talk to the terminal themselves
	calls  *callTree

	stop chan struct{}
	done sync.WaitGroup
}

// step is a started build step.
type step struct {
	name  string
	since time.Time
}

// newView starts a view; close ends it.
func newView(out *output, unit string, quiet bool) *view {
	v := &view{
		out: out, unit: unit, quiet: quiet, steps: map[string]step{}, calls: newCallTree(unit),
		stop: make(chan struct{}),
	}
	if out.terminal && !quiet {
		v.done.Go(v.animate)
	}
	return v
}

func (v *view) close() {
	close(v.stop)
	v.done.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	if root := v.calls.root; v.out.terminal && !v.quiet && (len(root.twigs()) > 0 || root.models.Calls > 0) {
		for _, line := range v.calls.root.lines(v.out, time.Now()) {
			v.out.line("%s", line)
		}
	}
}

func (v *view) animate() {
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	for {
		select {
		case <-v.stop:
			return
		case <-ticker.C:
			v.mu.Lock()
			v.frame++
			v.draw()
			v.mu.Unlock()
		}
	}
}

// event implements an orchestrator's observer.
func (v *view) event(e run.Event) {
	if e.Unit == "" {
		e.Unit = v.unit
	}
	v.call(e)
	switch {
	case e.Build != nil && e.Parent != "":
		v.waitFor("building %s", printable(e.Unit))
	case e.Build != nil:
		v.build(*e.Build)
	case e.Log != nil:
		v.print("%s %s", v.out.style(dim, printable(e.Unit)+" |"), printable(settled(e.Log.Text)))
	case e.State != nil && e.Parent == "":
		v.state(*e.State)
	case e.Egress != nil:
		v.print("%s", v.out.egressLine(e.Unit, *e.Egress))
	case e.Warning != "":
		v.print("%s %s", v.out.style(yellow, "warning:"), printable(e.Warning))
	case e.Progress != nil && e.Parent == "":
		v.waitFor("%s %s", v.unit, progressText(*e.Progress))
	}
}

// call records an event in the tree. In a pipe each call gets lines of its own.
func (v *view) call(e run.Event) {
	v.mu.Lock()
	node, called := v.calls.note(e)
	line := node.line(v.out, time.Now())
	v.mu.Unlock()
	if v.out.terminal || e.Parent == "" {
		return
	}
	if called || e.State != nil && ended(e.State.State) {
		v.print("%s", line)
	}
}

func progressText(p handoff.Progress) string {
	var parts []string
	if p.Percent != nil {
		parts = append(parts, fmt.Sprintf("%.0f%%", *p.Percent))
	}
	for _, text := range []string{p.Step, p.Message} {
		if text != "" {
			parts = append(parts, printable(text))
		}
	}
	return strings.Join(parts, " ")
}

func (v *view) state(t api.Transition) {
	switch t.State {
	case api.Starting, api.Running:
		v.waitFor("%s %s", v.unit, t.State)
	case api.Cleanup:
		v.waitFor("cleaning up")
	}
}

// build omits the builder's own housekeeping, unless that fails.
func (v *view) build(e runtime.BuildEvent) {
	if housekeeping(v.name(e)) && e.State != runtime.StepFailed {
		return
	}
	v.title()
	switch e.State {
	case runtime.StepStarted:
		v.begin(e)
	case runtime.StepDone:
		v.print("%s %s %s", v.out.style(green, "✓"), v.name(e), v.out.style(dim, v.took(e)))
	case runtime.StepCached:
		v.print("%s %s", v.out.style(dim, "="), v.name(e))
	case runtime.StepFailed:
		v.print("%s %s", v.out.style(red, "✗"), v.name(e))
	case runtime.StepLog:
		v.buildLog(e)
	}
}

// title prints once that something is being built.
func (v *view) title() {
	v.mu.Lock()
	first := !v.built
	v.built = true
	v.mu.Unlock()
	if first {
		v.print("building %s", v.unit)
	}
}

// housekeeping reports whether a step is BuildKit's own, not the Dockerfile's.
func housekeeping(name string) bool {
	return strings.HasPrefix(name, "[internal]") || name == "copy /context /"
}

func (v *view) begin(e runtime.BuildEvent) {
	v.mu.Lock()
	v.steps[e.Step] = step{name: e.Name, since: time.Now()}
	v.mu.Unlock()
	v.waitFor("%s", printable(e.Name))
}

// buildLog shows a step's output as it comes; on a terminal only its last line.
func (v *view) buildLog(e runtime.BuildEvent) {
	if v.out.terminal {
		v.waitFor("%s  %s", v.name(e), printable(settled(e.Log)))
		return
	}
	v.print("  %s", printable(settled(e.Log)))
}

// settled returns the final text of a line whose writer went back to its start, as progress
// bars do.
func settled(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

func (v *view) name(e runtime.BuildEvent) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Name == "" {
		e.Name = v.steps[e.Step].name
	}
	return printable(e.Name)
}

func (v *view) took(e runtime.BuildEvent) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	begun, ok := v.steps[e.Step]
	if !ok {
		return ""
	}
	return time.Since(begun.since).Round(100 * time.Millisecond).String()
}

// print writes a line that stays.
func (v *view) print(format string, args ...any) {
	if v.quiet {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	v.out.line(format, args...)
	v.draw()
}

// waitFor sets what is being waited for.
func (v *view) waitFor(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status, v.since = fmt.Sprintf(format, args...), time.Now()
}

// hold leaves the terminal to another one, until release is called.
func (v *view) hold() (release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	v.held++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.held--
	}
}

// asks shows an open question of a run. In a pipe the command that answers it gets a line.
func (v *view) asks(id string, q api.Question) {
	v.mu.Lock()
	if node := v.calls.nodes[id]; node != nil {
		node.graph.asks(q.Address, &q)
	}
	v.mu.Unlock()
	v.print("%s %s: %s", v.out.style(yellow, "?"), printable(q.Address), printable(q.Text))
	if !v.out.terminal {
		v.print("  %s", answerText(q))
	}
}

// answered notes that a question is open no more.
func (v *view) answered(id, address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if node := v.calls.nodes[id]; node != nil {
		node.graph.asks(address, nil)
	}
}

// draw shows what is being waited for, and the calls below it.
func (v *view) draw() {
	if !v.out.terminal || v.quiet || v.status == "" || v.held > 0 {
		return
	}
	v.erase()
	head := fmt.Sprintf("%c %s %.1fs", spinner[v.frame%len(spinner)], v.status, time.Since(v.since).Seconds())
	_, _ = fmt.Fprint(v.out, v.fit(head))
	v.drawn = 1
	for _, line := range branches(v.out.plain(), v.calls.root.twigs(), "", time.Now()) {
		if v.drawn == maxDrawn {
			break
		}
		_, _ = fmt.Fprint(v.out, "\n"+v.fit(line))
		v.drawn++
	}
}

// maxDrawn bounds the lines of a growing tree on a terminal.
const maxDrawn = 16

func (v *view) fit(line string) string {
	text := []rune(line)
	if limit := v.out.width() - 1; len(text) > limit {
		text = append(text[:limit-1], '…')
	}
	return string(text)
}

func (v *view) erase() {
	if v.drawn == 0 {
		return
	}
	_, _ = fmt.Fprint(v.out, strings.Repeat("\r\x1b[K\x1b[A", v.drawn-1)+"\r\x1b[K")
	v.drawn = 0
}
