package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff"
)

// Bounds of what is shown, whatever the agent, or the server, sends.
const (
	maxShown    = 1 << 20  // bytes of a turn's text at a terminal
	maxQuestion = 65 << 10 // bytes of a question's text: what a server keeps of one
	maxAnswers  = 100
	maxTools    = 1000 // calls whose end is awaited
	maxName     = 60   // characters of a tool's name
	minFold     = 20   // characters of a folded text, however narrow the terminal
)

// view shows what comes of a turn: what the agent says on Out, the rest on Err. Where a person edits lines both are the
// same screen.
type view struct {
	env    *cli.Env
	edited bool

	told    bool // the turn has told some of its answer
	open    bool // the last line of that isn't ended
	saying  saying
	shown   int // bytes of it
	hidden  int // bytes of it beyond maxShown
	tools   map[string]*tool
	order   []string // of tools
	line    *tool    // whose line isn't ended; nil: none
	thought folded
	step    string // that was shown last
	steps   int
}

// saying is what a model said last, as it came: the answer, or only what it said on the way there.
type saying struct {
	answer, field string // which text that is; "": there is none
	text          []byte // of it, from its begin
	lost          bool   // some of it didn't come
}

// tool is a tool call that hasn't ended.
type tool struct{ name, arguments string }

// begin begins a turn.
func (v *view) begin() { *v = view{env: v.env, edited: v.edited, tools: map[string]*tool{}} }

// note prints a remark of ours.
func (v *view) note(format string, args ...any) {
	v.settle()
	v.env.Note(format, args...)
}

// settle ends the lines that are open. In a pipe the answer goes on in its own one.
func (v *view) settle() {
	v.endThought()
	v.endTool()
	if v.edited {
		v.endText()
	}
}

func (v *view) endText() {
	if v.open {
		v.env.Out.Line("")
	}
	v.open = false
}

func (v *view) endTool() {
	if v.line != nil {
		v.env.Err.Line("")
	}
	v.line = nil
}

// show shows an event; of nil, and of what says nothing to a person, nothing.
func (v *view) show(data api.EventData) {
	switch data := data.(type) {
	case api.AgentEvent:
		v.showTold(data)
	case api.TokensEvent:
		v.showWords(data)
	case api.WarningEvent:
		v.note("%s %s", v.env.Err.Style(ui.Yellow, "warning:"), v.cut(data.Message))
	case api.ProgressEvent:
		v.showStep(cmp.Or(data.Step, data.Message))
	case api.AttemptEvent:
		v.note("attempt %d failed: %s; it is made again", data.Number, v.cut(messageOf(data.Error)))
	}
}

// showStep shows how far a turn is, where that is news.
func (v *view) showStep(step string) {
	if step == "" || step == v.step || v.steps == maxTools || v.env.Quiet {
		return
	}
	v.step, v.steps = step, v.steps+1
	v.settle()
	v.endText()
	v.env.Err.Line("%s", v.env.Err.Style(ui.Dim, v.cut(step)))
}

func messageOf(e *api.RunError) string {
	if e == nil {
		return "for no reason that is told"
	}
	return e.Message
}

func (v *view) showTold(told api.AgentEvent) {
	if told.Kind != api.AgentThought {
		v.endThought()
	}
	switch told.Kind {
	case api.AgentText:
		v.endTool()
		v.say(told.Text)
	case api.AgentThought:
		v.thought.kind = "thought"
		v.thought.add(told.Text)
	case "tool":
		v.endText()
		v.showTool(told)
	case "plan", "strange", "refused":
		v.thought = folded{kind: told.Kind}
		v.thought.add(told.Text)
		v.endThought()
	}
}

// showWords prints what a model says at the moment: on its way, and then the text of its answer.
func (v *view) showWords(said api.TokensEvent) {
	s := &v.saying
	switch {
	case said.Kind == api.AgentThought:
		v.thought.kind = "thought"
		v.thought.add(said.Text)
		return
	case said.Field != "" && said.Field != "text":
		return
	case said.Answer != s.answer || said.Field != s.field:
		v.settle()
		v.endText()
		*s = saying{answer: said.Answer, field: said.Field}
	}
	v.endThought()
	v.endTool()
	v.print(said.Text)
	if s.lost = s.lost || said.Lost || len(s.text) > maxShown; !s.lost {
		s.text = append(s.text, said.Text...)
	}
}

// sayRest prints what is lacking of an answer that was told while it came, if it was.
func (v *view) sayRest(record api.Record) {
	text, is := record.Text()
	rest, begun := strings.CutPrefix(text, string(v.saying.text))
	if v.told || !is || !begun || len(v.saying.text) == 0 || v.saying.lost {
		return
	}
	v.endThought()
	v.endTool()
	v.print(rest)
	v.told = true
}

// say prints some of the answer as it comes.
func (v *view) say(text string) {
	v.told = v.told || text != ""
	v.print(text)
}

func (v *view) print(text string) {
	if text == "" {
		return
	}
	if v.env.Out.Terminal {
		if left := maxShown - v.shown; len(text) > left {
			whole := len(text)
			text = fault.Cut(text, left)
			v.hidden += whole - len(text)
		}
		v.shown += len(text)
		text = ui.Printable(text)
	}
	if text != "" {
		_, _ = v.env.Out.Write([]byte(text)) // as every line
		v.open = !strings.HasSuffix(text, "\n")
	}
}

// showTool prints a line for a tool call. At a terminal it is begun with the call and ended with its end, unless
// something else comes between; in a pipe it is printed at the end.
func (v *view) showTool(told api.AgentEvent) {
	if v.env.Quiet {
		return
	}
	call, known := v.tools[told.ID]
	ended := told.State == api.ToolDone || told.State == api.ToolFailed
	switch {
	case !known && told.Text == "":
		return // the end of one whose begin isn't known
	case !known:
		call = &tool{told.Text, told.Arguments}
		v.keep(told.ID, call)
	case told.Arguments != "" && call.arguments == "":
		call.arguments = told.Arguments
	}
	switch {
	case ended && v.line == call:
		v.env.Err.Line("%s", v.stateOf(told))
		v.line = nil
		v.forget(told.ID)
	case ended:
		v.endTool()
		v.env.Err.Line("%s%s", v.textOf(call), v.stateOf(told))
		v.forget(told.ID)
	case !known && v.edited:
		v.endTool()
		_, _ = v.env.Err.Write([]byte(v.textOf(call)))
		v.line = call
	case !known && told.ID == "":
		v.env.Err.Line("%s", v.textOf(call))
	}
}

// keep remembers a call until its end; of too many the oldest is forgotten.
func (v *view) keep(id string, call *tool) {
	if id == "" {
		return
	}
	if len(v.order) == maxTools {
		v.forget(v.order[0])
	}
	v.tools[id], v.order = call, append(v.order, id)
}

func (v *view) forget(id string) {
	delete(v.tools, id)
	v.order = slices.DeleteFunc(v.order, func(other string) bool { return other == id })
}

func (v *view) textOf(call *tool) string {
	name := ui.Begin(ui.Cell(call.name), maxName)
	room := max(minFold, v.env.Err.Width()-len([]rune(name))-24) // for the mark and the state
	text := "▸ " + name
	if call.arguments != "" {
		text += " " + ui.Begin(ui.Cell(call.arguments), room)
	}
	return v.env.Err.Style(ui.Dim, text)
}

// stateOf is how a call has ended. Its output is only counted.
func (v *view) stateOf(told api.AgentEvent) string {
	state := " " + v.env.Err.Style(ui.Green, "✓")
	if told.State == api.ToolFailed {
		state = " " + v.env.Err.Style(ui.Red, "✗ failed")
	}
	if told.Lines > 0 {
		state += v.env.Err.Style(ui.Dim, " … "+ui.Plural(told.Lines, "line"))
	}
	return state
}

// folded is a text of which the first line is shown, and the others are counted.
type folded struct {
	kind  string // "": there is none
	first string
	full  bool // first is whole, or long enough
	lines int
	whole bool // the last line has ended
}

const maxFirst = 1 << 10 // bytes

func (f *folded) add(text string) {
	for line := range strings.Lines(text) {
		if f.lines == 0 || f.whole {
			f.lines++
		}
		f.whole = strings.HasSuffix(line, "\n")
		if !f.full {
			f.first = fault.Cut(strings.TrimLeft(f.first+line, " \t\r\n"), maxFirst)
			f.full = f.first != "" && f.whole || len(f.first) >= maxFirst-len("…")
		}
	}
}

// endThought prints the text that is folded.
func (v *view) endThought() {
	f := v.thought
	v.thought = folded{}
	if f.kind == "" || v.env.Quiet || strings.TrimSpace(f.first) == "" {
		return
	}
	v.endTool()
	if v.edited || f.kind == api.AgentThought || f.kind == "plan" { // else the answer goes on
		v.endText()
	}
	text := f.kind + ": " + v.cut(strings.TrimSpace(f.first))
	if f.lines > 1 {
		text += " … " + ui.Plural(f.lines, "line")
	}
	v.env.Err.Line("%s", v.env.Err.Style(ui.Dim, text))
}

// cut keeps a stranger's text on one line.
func (v *view) cut(text string) string {
	return ui.Begin(ui.Cell(text), max(minFold, v.env.Err.Width()-24))
}

// ask shows a question with its answers.
func (v *view) ask(q api.Question) {
	v.settle()
	v.endText()
	text := fault.Cut(q.Text, maxQuestion)
	v.env.Err.Line("%s", v.env.Err.Style(ui.Bold, ui.Printable(text)))
	if left := len(q.Text) - len(text); left > 0 {
		v.env.Err.Line("(%d bytes more, which aren't shown)", left)
	}
	if q.IsForOthers() {
		v.env.Err.Line("  answered by %s alone", v.cut(strings.Join(q.Approvers, ", ")))
		return
	}
	var names map[string]any
	_ = json.Unmarshal(q.Show, &names) // there are none otherwise
	for i, answer := range q.Answers[:min(len(q.Answers), maxAnswers)] {
		line := fmt.Sprintf("  %d %s", i+1, v.cut(answer))
		if name, _ := names[answer].(string); !strings.EqualFold(name, answer) && name != "" {
			line += " " + v.env.Err.Style(ui.Dim, v.cut(name))
		}
		v.env.Err.Line("%s", line)
	}
	if q.Kind == api.QuestionInput && slices.Contains(q.Answers, handoff.Reply) {
		v.env.Err.Line("  or what you say")
	}
}

// chosen is the answer that a text means: one of the question's, also by its number, or the text itself.
func chosen(q api.Question, text string) string {
	n, err := strconv.Atoi(text)
	if err == nil && n >= 1 && n <= len(q.Answers) && !slices.Contains(q.Answers, text) {
		return q.Answers[n-1]
	}
	return text
}

// end shows how a turn has ended, and its answer where it told none before.
func (v *view) end(record api.Record) {
	v.sayRest(record)
	v.settle()
	v.endText()
	for _, id := range v.order { // whose end was never told
		if !v.edited {
			v.env.Err.Line("%s", v.textOf(v.tools[id]))
		}
	}
	if v.hidden > 0 {
		v.env.Note("… %s more, which `aod runs %s --json` has", ui.Bytes(int64(v.hidden)), ui.Printable(record.ID))
	}
	if !v.told {
		_ = runcmd.PrintRun(v.env, record, runcmd.AsText) // as every line
	}
	if record.Error != nil {
		v.env.Err.RunError(record.Unit, *record.Error)
	}
	if n := len(record.Files); n > 0 {
		v.env.Note("%s", v.env.Err.Style(ui.Dim, ui.Plural(n, "file")+": /files"))
	}
}

// sortedNames are the names of a map, in their order.
func sortedNames[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }
