// Package progress is what is seen of a run while it goes on: its states, what is built, its log, and the tree of its
// calls. It must not know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package progress

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const frameTime = 100 * time.Millisecond

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// View shows progress on stderr: lines that stay, and on a terminal a last line that says
// what is being waited for.
type View struct {
	Out   *ui.Output
	Unit  string
	quiet bool

	mu     sync.Mutex
	status string // what is in progress; "" is nothing
	since  time.Time
	steps  map[string]step
	built  map[string]bool // the units of which a step was shown
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

// New starts a view; close ends it.
func New(out *ui.Output, unit string, quiet bool) *View {
	v := &View{
		Out: out, Unit: unit, quiet: quiet, steps: map[string]step{}, built: map[string]bool{},
		calls: newCallTree(unit), stop: make(chan struct{}),
	}
	if out.Terminal && !quiet {
		v.done.Go(v.animate)
	}
	return v
}

// Close ends the view: on a terminal the tree of the calls stays.
func (v *View) Close() {
	close(v.stop)
	v.done.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	if root := v.calls.root; v.Out.Terminal && !v.quiet && (len(root.twigs()) > 0 || root.models.Calls > 0) {
		for _, line := range v.calls.root.lines(v.Out, time.Now()) {
			v.Out.Line("%s", line)
		}
	}
}

func (v *View) animate() {
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

// Event implements an orchestrator's observer.
func (v *View) Event(e run.Event) {
	if e.Unit == "" {
		e.Unit = v.Unit
	}
	v.call(e)
	switch data := e.Data.(type) {
	case api.EgressEvent:
		v.Print("%s", v.Out.EgressLine(e.Unit, data))
	case api.ModelCall:
		v.turn(e.Unit, data)
	}
	switch {
	case e.Build != nil && e.Parent != "" && v.Out.Terminal:
		v.WaitFor("building %s", ui.Printable(e.Unit))
	case e.Build != nil:
		v.build(e.Unit, *e.Build)
	case e.Log != nil:
		v.Print("%s %s", v.Out.Style(ui.Dim, ui.Printable(e.Unit)+" |"), ui.Printable(terminal.Settled(e.Log.Text)))
	case e.State != nil && e.Parent == "":
		v.state(*e.State)
	case e.Warning != "":
		v.Print("%s %s", v.Out.Style(ui.Yellow, "warning:"), ui.Printable(e.Warning))
	case e.Progress != nil && e.Parent == "":
		v.WaitFor("%s %s", v.Unit, progressText(*e.Progress))
	}
}

// call records an event in the tree. In a pipe each call gets lines of its own.
func (v *View) call(e run.Event) {
	v.mu.Lock()
	node, called := v.calls.note(e)
	line := node.line(v.Out, time.Now())
	v.mu.Unlock()
	if v.Out.Terminal || e.Parent == "" {
		return
	}
	if called || e.State != nil && ended(e.State.State) {
		v.Print("%s", line)
	}
}

// turn shows an answer of a model, in a pipe: on a terminal the tree counts them.
func (v *View) turn(unit string, c api.ModelCall) {
	if v.Out.Terminal || c.Status == 0 {
		return
	}
	took := time.Duration(c.MS * float64(time.Millisecond)).Round(10 * time.Millisecond)
	line := fmt.Sprintf("%s turn %d: %s, %s, %s", unit, c.N, c.Model, ui.Tokens(c.Charged), took)
	if c.Status >= http.StatusBadRequest {
		line += fmt.Sprintf(", HTTP %d", c.Status)
	}
	v.Print("%s", ui.Printable(line))
}

func progressText(p handoff.Progress) string {
	var parts []string
	if p.Percent != nil {
		parts = append(parts, fmt.Sprintf("%.0f%%", *p.Percent))
	}
	for _, text := range []string{p.Step, p.Message} {
		if text != "" {
			parts = append(parts, ui.Printable(text))
		}
	}
	return strings.Join(parts, " ")
}

func (v *View) state(t api.Transition) {
	switch t.State {
	case api.Starting, api.Running:
		v.WaitFor("%s %s", v.Unit, t.State)
	case api.Cleanup:
		v.WaitFor("cleaning up")
	}
}

// Build shows a step of the view's unit.
func (v *View) Build(e runtime.BuildEvent) { v.build(v.Unit, e) }

// build omits the builder's own housekeeping, unless that fails. The steps of units that are called
// are told apart from the unit's own.
func (v *View) build(unit string, e runtime.BuildEvent) {
	if unit != v.Unit {
		e.Step = unit + "/" + e.Step
	}
	if housekeeping(v.name(e)) && e.State != runtime.StepFailed {
		return
	}
	v.title(unit)
	switch e.State {
	case runtime.StepStarted:
		v.begin(e)
	case runtime.StepDone:
		v.Print("%s %s %s", v.Out.Style(ui.Green, "✓"), v.name(e), v.Out.Style(ui.Dim, v.took(e)))
	case runtime.StepCached:
		v.Print("%s %s", v.Out.Style(ui.Dim, "="), v.name(e))
	case runtime.StepFailed:
		v.Print("%s %s", v.Out.Style(ui.Red, "✗"), v.name(e))
	case runtime.StepLog:
		v.buildLog(e)
	}
}

// title prints once that a unit is being built.
func (v *View) title(unit string) {
	v.mu.Lock()
	first := !v.built[unit]
	v.built[unit] = true
	v.mu.Unlock()
	if first {
		v.Print("building %s", ui.Printable(unit))
	}
}

// housekeeping reports whether a step is BuildKit's own, not the Dockerfile's.
func housekeeping(name string) bool {
	return strings.HasPrefix(name, "[internal]") || name == "copy /context /"
}

func (v *View) begin(e runtime.BuildEvent) {
	v.mu.Lock()
	v.steps[e.Step] = step{name: e.Name, since: time.Now()}
	v.mu.Unlock()
	v.WaitFor("%s", ui.Printable(e.Name))
}

// buildLog shows a step's output as it comes; on a terminal only its last line.
func (v *View) buildLog(e runtime.BuildEvent) {
	if v.Out.Terminal {
		v.WaitFor("%s  %s", v.name(e), ui.Printable(terminal.Settled(e.Log)))
		return
	}
	v.Print("  %s", ui.Printable(terminal.Settled(e.Log)))
}

func (v *View) name(e runtime.BuildEvent) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Name == "" {
		e.Name = v.steps[e.Step].name
	}
	return ui.Printable(e.Name)
}

func (v *View) took(e runtime.BuildEvent) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	begun, ok := v.steps[e.Step]
	if !ok {
		return ""
	}
	return time.Since(begun.since).Round(100 * time.Millisecond).String()
}

// Print writes a line that stays.
func (v *View) Print(format string, args ...any) {
	if v.quiet {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	v.Out.Line(format, args...)
	v.draw()
}

// WaitFor sets what is being waited for.
func (v *View) WaitFor(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status, v.since = fmt.Sprintf(format, args...), time.Now()
}

// Hold leaves the terminal to another one, until release is called.
func (v *View) Hold() (release func()) {
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

// Asks shows an open question of a run. In a pipe the command that answers it gets a line.
func (v *View) Asks(id string, q api.Question) {
	v.mu.Lock()
	if node := v.calls.nodes[id]; node != nil {
		node.graph.asks(q.Address, &q)
	}
	v.mu.Unlock()
	v.Print("%s %s: %s", v.Out.Style(ui.Yellow, "?"), ui.Printable(q.Address), ui.Printable(q.Text))
	if !v.Out.Terminal {
		v.Print("  %s", AnswerCommand(q))
	}
}

// Answered notes that a question is open no more.
func (v *View) Answered(id, address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if node := v.calls.nodes[id]; node != nil {
		node.graph.asks(address, nil)
	}
}

// draw shows what is being waited for, and the calls below it.
func (v *View) draw() {
	if !v.Out.Terminal || v.quiet || v.status == "" || v.held > 0 {
		return
	}
	v.erase()
	head := fmt.Sprintf("%c %s %.1fs", spinner[v.frame%len(spinner)], v.status, time.Since(v.since).Seconds())
	_, _ = fmt.Fprint(v.Out, v.fit(head))
	v.drawn = 1
	for _, line := range branches(v.Out.Plain(), v.calls.root.twigs(), "", time.Now()) {
		if v.drawn == maxDrawn {
			break
		}
		_, _ = fmt.Fprint(v.Out, "\n"+v.fit(line))
		v.drawn++
	}
}

// maxDrawn bounds the lines of a growing tree on a terminal.
const maxDrawn = 16

func (v *View) fit(line string) string {
	text := []rune(line)
	if limit := v.Out.Width() - 1; len(text) > limit {
		text = append(text[:limit-1], '…')
	}
	return string(text)
}

func (v *View) erase() {
	if v.drawn == 0 {
		return
	}
	_, _ = fmt.Fprint(v.Out, strings.Repeat("\r\x1b[K\x1b[A", v.drawn-1)+"\r\x1b[K")
	v.drawn = 0
}
