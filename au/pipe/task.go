package pipe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/lazyregexp"
	"github.com/agent-on-demand/aod/quantity"
	"github.com/agent-on-demand/aod/strictjson"
)

const (
	maxTasks     = 64
	maxTasksFile = 1 << 20
)

// Task is one step of a pipeline.
type Task struct {
	ID      string        // later tasks name its result by it
	Unit    string        // DIR|PROGRAM|IMAGE|NAME
	Args    []string      // words and flags, as the unit's model card has them
	Prompt  string        // "" is none
	From    string        // the task whose result is its stdin; "" is the pipeline's own stdin
	Timeout time.Duration // 0 is that of the whole pipeline, or the unit's own
}

// Parse reads a line of units, "UNIT ARGS | UNIT ARGS", or the file of a text
// "@TASKS.json": at most 64 tasks, each on the result of an earlier one. An unreadable or
// invalid pipeline is an Input or a TooLarge fault, with a finding for each task of a file.
func Parse(text string) ([]Task, error) {
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		return readTasks(name)
	}
	var tasks []Task
	for rest, more := text, true; more; {
		parser := shellwords.NewParser()
		words, err := parser.Parse(rest)
		if err != nil {
			return nil, fault.Wrap(fault.Input, err, "the pipeline can't be read: %s", err).WithHint("close its quotes")
		}
		if len(words) == 0 {
			return nil, fault.New(fault.Input, "the pipeline lacks a unit at its place %d", len(tasks)+1).WithHint(`write it as "UNIT | UNIT"`)
		}
		task := Task{ID: strconv.Itoa(len(tasks) + 1), Unit: words[0], Args: words[1:]}
		if len(tasks) > 0 {
			task.From = tasks[len(tasks)-1].ID
		}
		tasks = append(tasks, task)
		if len(tasks) > maxTasks {
			return nil, fault.New(fault.TooLarge, "the pipeline has more than %d units", maxTasks)
		}
		if more = parser.Position >= 0; more {
			if rest = rest[parser.Position:]; !strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, "||") {
				return nil, fault.New(fault.Input, "%q has no meaning in a pipeline", rest[:1]).WithHint("units are joined by |; put quotes around what is for a unit")
			}
			rest = rest[1:]
		}
	}
	return tasks, nil
}

const tasksHint = `write a list, such as [{"id": "a", "unit": "./a", "args": ["--n", "3"], "timeout": "30s"}, {"id": "b", "unit": "./b", "from": "a"}]`

func readTasks(name string) ([]Task, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the tasks %q can't be opened", name)
	}
	defer func() { _ = file.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(file, maxTasksFile+1))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Input, err, "the tasks %q can't be read", name)
	case len(raw) > maxTasksFile:
		return nil, fault.New(fault.TooLarge, "%s has more than %d bytes", name, maxTasksFile)
	}
	return parseTasks(name, raw)
}

// parseTasks reads the text of a file of tasks.
func parseTasks(name string, raw []byte) ([]Task, error) {
	if err := strictjson.Check(raw, strictjson.Rules{}); err != nil {
		return nil, fault.New(fault.Input, "%s is no list of tasks: it is not valid JSON: %s", name, err).WithHint(tasksHint)
	}
	var each []json.RawMessage
	if json.Unmarshal(raw, &each) != nil || each == nil {
		return nil, fault.New(fault.Input, "%s is no list of tasks", name).WithHint(tasksHint)
	}
	if len(each) == 0 || len(each) > maxTasks {
		return nil, fault.New(fault.Input, "%s has %d tasks; from 1 to %d can be run", name, len(each), maxTasks).WithHint(tasksHint)
	}
	tasks := make([]Task, len(each))
	var findings []fault.Finding
	for i, one := range each {
		findings = append(findings, tasks[i].read("/"+strconv.Itoa(i), one)...)
	}
	if len(findings) == 0 {
		findings = checkTasks(tasks)
	}
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "the tasks of %s can't be run", name).WithHint(tasksHint).WithFindings(findings)
	}
	return tasks, nil
}

// taskFields are the fields of a task, by their names: what each has to be, and where it goes.
var taskFields = map[string]struct {
	want string
	into func(*Task) any
}{
	"id":      {"a text", func(t *Task) any { return &t.ID }},
	"unit":    {"a text", func(t *Task) any { return &t.Unit }},
	"args":    {"a list of texts", func(t *Task) any { return &t.Args }},
	"prompt":  {"a text", func(t *Task) any { return &t.Prompt }},
	"from":    {"a text", func(t *Task) any { return &t.From }},
	"timeout": {`a duration, such as "30s"`, func(t *Task) any { return (*duration)(&t.Timeout) }},
}

var taskKeys = []string{"id", "unit", "args", "prompt", "from", "timeout"}

// read reads one task, and returns what is wrong with it.
func (t *Task) read(at string, raw []byte) (findings []fault.Finding) {
	if raw = bytes.TrimSpace(raw); raw[0] != '{' {
		return []fault.Finding{{Pointer: at, Message: "is no task", Hint: "a task is an object with " + strings.Join(taskKeys, ", ")}}
	}
	for key, value := range strictjson.Members(raw) {
		pointer := at + "/" + strictjson.Escape(fmt.Sprintf("%.80s", key))
		field, known := taskFields[key]
		switch {
		case !known:
			findings = append(findings, fault.Finding{Pointer: pointer, Message: "is no field of a task", Hint: "fields are " + strings.Join(taskKeys, ", ")})
		case json.Unmarshal(value, field.into(t)) != nil:
			findings = append(findings, fault.Finding{Pointer: pointer, Message: "has to be " + field.want})
		}
	}
	return findings
}

// duration is a time as people write it.
type duration time.Duration

// maxTaskTime is more than any unit takes.
const maxTaskTime = 7 * 24 * time.Hour

// UnmarshalJSON reads a text such as "30s".
func (d *duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	parsed, err := quantity.ParseDuration(text, time.Millisecond, maxTaskTime)
	*d = duration(parsed)
	return err
}

var taskIDs = lazyregexp.New(`^[A-Za-z0-9_-]{1,40}$`)

// checkTasks finds every task that can't be run, before any task runs.
func checkTasks(tasks []Task) (findings []fault.Finding) {
	var known []string
	for i, task := range tasks {
		at := "/" + strconv.Itoa(i)
		switch {
		case task.Unit == "":
			findings = append(findings, fault.Finding{Pointer: at + "/unit", Message: "is missing", Hint: "name the unit to run"})
		case !taskIDs().MatchString(task.ID) || slices.Contains(known, task.ID):
			findings = append(findings, fault.Finding{Pointer: at + "/id", Message: "is no id, or another task's", Hint: "use letters, digits, - and _, at most 40"})
		case task.From != "" && !slices.Contains(known, task.From):
			findings = append(findings, fault.Finding{Pointer: at + "/from", Message: "is no earlier task's id", Hint: "a task takes the result of one that stands before it"})
		}
		known = append(known, task.ID)
	}
	return findings
}
