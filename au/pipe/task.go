package pipe

import (
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	"github.com/agent-on-demand/aod/fault"
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
