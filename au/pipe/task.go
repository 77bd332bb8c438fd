package pipe

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/mattn/go-shellwords"

	"github.com/agent-on-demand/aod/fault"
)

const (
	maxTasks     = 64
	maxTasksFile = 1 << 20
)

// Task is one step of a pipeline.
type Task struct {
	ID     string   `json:"id"`               // later tasks name its result by it
	Unit   string   `json:"unit"`             // DIR|PROGRAM|IMAGE|NAME
	Args   []string `json:"args,omitempty"`   //
	Prompt string   `json:"prompt,omitempty"` //
	From   string   `json:"from,omitempty"`   // the task whose result is its stdin; "" is the pipeline's own stdin
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

func readTasks(name string) ([]Task, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the tasks %q can't be opened", name)
	}
	defer func() { _ = file.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(file, maxTasksFile))
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the tasks %q can't be read", name)
	}
	var tasks []Task
	if err := json.Unmarshal(raw, &tasks); err != nil {
		return nil, fault.Wrap(fault.Input, err, "%s is no list of tasks", name).WithHint(`write [{"id": "a", "unit": "./a"}, {"id": "b", "unit": "./b", "from": "a"}]`)
	}
	if len(tasks) == 0 || len(tasks) > maxTasks {
		return nil, fault.New(fault.Input, "%s has %d tasks; from 1 to %d can be run", name, len(tasks), maxTasks)
	}
	return tasks, checkTasks(tasks)
}

var taskIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// checkTasks finds every task that can't be run, before any task runs.
func checkTasks(tasks []Task) error {
	known := map[string]bool{}
	var findings []fault.Finding
	for i, task := range tasks {
		at := "/" + strconv.Itoa(i)
		switch {
		case task.Unit == "":
			findings = append(findings, fault.Finding{Pointer: at + "/unit", Message: "is missing", Hint: "name the unit to run"})
		case !taskIDs.MatchString(task.ID) || known[task.ID]:
			findings = append(findings, fault.Finding{Pointer: at + "/id", Message: "is no id, or another task's", Hint: "use letters, digits, - and _, at most 40"})
		case task.From != "" && !known[task.From]:
			findings = append(findings, fault.Finding{Pointer: at + "/from", Message: "is no earlier task's id", Hint: "a task takes the result of one that stands before it"})
		}
		known[task.ID] = true
	}
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "the tasks can't be run").WithFindings(findings)
}
