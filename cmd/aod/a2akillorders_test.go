package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// The states of tasks, as the protocol writes them.
const (
	taskWorking   = "TASK_STATE_WORKING"
	taskCompleted = "TASK_STATE_COMPLETED"
	taskFailed    = "TASK_STATE_FAILED"
	taskAsks      = "TASK_STATE_INPUT_REQUIRED"
)

// a2aProgress are the states of a task that comes to a good end, in their order.
var a2aProgress = []string{"TASK_STATE_SUBMITTED", taskWorking, taskCompleted}

// a2aWork is what clients of a kind do.
type a2aWork struct {
	do      func(context.Context, *a2aOrder) error
	clients int // 0: as many as of most kinds
}

func (k *a2aKilling) kinds() map[string]a2aWork {
	return map[string]a2aWork{
		"blocking":      {do: k.block},
		"stream":        {do: k.stream},
		"question":      {do: k.ask},
		"push":          {do: k.push},
		"remote":        {do: k.waitFar, clients: 2},
		"remote stream": {do: k.streamFar, clients: 2},
		"remote asks":   {do: k.askFar, clients: 2},
	}
}

// block sends a message and waits.
func (k *a2aKilling) block(ctx context.Context, o *a2aOrder) error {
	task, err := k.send(ctx, o, "worker", o.message(o.work()), "")
	return o.ended(task, err)
}

// ask has a task that asks something, and answers.
func (k *a2aKilling) ask(ctx context.Context, o *a2aOrder) error {
	task, err := k.send(ctx, o, "person", o.message(fmt.Sprintf(`{"data":{"ask":{"text":"Who is %d?"}}}`, o.mark)), "")
	if err != nil || task.Status.State != taskAsks {
		return fmt.Errorf("it is %s, and asks nothing: %w", task.Status.State, err)
	}
	task, err = k.send(ctx, o, "person", o.answer(), "")
	return o.ended(task, err)
}

// push sends a message, and hears of its end by pushes.
func (k *a2aKilling) push(ctx context.Context, o *a2aOrder) error {
	path := fmt.Sprintf("/%d", o.mark)
	config := `,"configuration":{"returnImmediately":true,"taskPushNotificationConfig":` + pushTo(k.hooks+path) + `}`
	if _, err := k.send(ctx, o, "worker", o.message(o.work()), config); err != nil {
		return err
	}
	heard := k.receiver(path)
	for ctx.Err() == nil {
		told, bad := heard.all()
		if len(bad) > 0 {
			return fmt.Errorf("a push is wrong: %q", bad)
		}
		if len(told) > 0 && strings.HasPrefix(told[len(told)-1], "task ") {
			return o.pushed(told)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// pushed holds what was told first of each event against the order of the events.
func (o *a2aOrder) pushed(told []string) error {
	last := len(told) - 1
	for i, what := range told {
		if want := taskWorking; i < last && what != want || i == last && (i == 0 || what != "task "+taskCompleted+" with 2") {
			return fmt.Errorf("the pushes tell %q", told)
		}
	}
	return nil
}

// stream follows a task over the deaths of its server.
func (k *a2aKilling) stream(ctx context.Context, o *a2aOrder) error {
	task, err := k.follow(ctx, o, "worker", o.message(o.work()))
	return o.ended(task, err)
}

// follow sends a message and follows its task, with another subscription whenever a stream breaks off.
// The state that subscribers are told never goes back.
func (k *a2aKilling) follow(ctx context.Context, o *a2aOrder, unit, message string) (task agentTask, err error) {
	o.unit = unit
	last := ""
	for ctx.Err() == nil && last != taskCompleted && last != taskFailed {
		method, params := "SendStreamingMessage", `{"message":`+message+`}`
		if o.run != "" {
			method, params = "SubscribeToTask", `{"id":"`+o.run+`"}`
		}
		first, wrong := true, error(nil)
		err := k.a2aStream(ctx, unit, method, params, func(e a2aEvent) {
			if wrong == nil {
				wrong = o.told(e, first, last)
			}
			if first = false; e.Task != nil {
				o.run = e.Task.ID
			}
			if state := e.state(); state != "" {
				last = state
			}
		})
		var refused *a2aRefusal
		switch {
		case wrong != nil:
			return task, wrong
		case errors.As(err, &refused) && refused.Code == a2aNotDone:
			last = taskCompleted // nobody can subscribe to it any more
		case refused != nil && refused.Code != a2aBusy:
			return task, err
		}
		if last != taskCompleted {
			o.resent++
			time.Sleep(20 * time.Millisecond)
		}
	}
	err = k.heardAtLast(ctx, func() error { return k.a2a(ctx, unit, "GetTask", `{"id":"`+o.run+`"}`, &task) })
	return task, err
}

// told holds an event against what was told before.
func (o *a2aOrder) told(e a2aEvent, first bool, last string) error {
	switch state := e.state(); {
	case first != (e.Task != nil):
		return fmt.Errorf("the task is the first event: %v", !first)
	case e.Task != nil && o.run != "" && e.Task.ID != o.run:
		return fmt.Errorf("the subscription is that of task %s", e.Task.ID)
	case state != taskFailed && state != "" && slices.Index(a2aProgress, state) < slices.Index(a2aProgress, last):
		return fmt.Errorf("it was %s, and is told to be %s", last, state)
	}
	return nil
}

// waitFar has a task of an agent elsewhere, which lasts until the last kill.
func (k *a2aKilling) waitFar(ctx context.Context, o *a2aOrder) error {
	task, err := k.send(ctx, o, "far", o.message(o.text("wait")), "")
	return o.endedFar(task, err)
}

func (k *a2aKilling) streamFar(ctx context.Context, o *a2aOrder) error {
	task, err := k.follow(ctx, o, "far-stream", o.message(o.text("wait")))
	return o.endedFar(task, err)
}

// askFar has a task of an agent elsewhere that asks something, and answers.
func (k *a2aKilling) askFar(ctx context.Context, o *a2aOrder) error {
	task, err := k.send(ctx, o, "far", o.message(o.text("ask")), "")
	if err == nil && task.Status.State == taskAsks {
		task, err = k.send(ctx, o, "far", o.answer(), "")
	}
	return o.endedFar(task, err)
}

// send sends the same message again until its answer is heard.
func (k *a2aKilling) send(ctx context.Context, o *a2aOrder, unit, message, config string) (agentTask, error) {
	o.unit = unit
	var answer a2aAnswer
	err := k.heardAtLast(ctx, func() error {
		err := k.a2a(ctx, unit, "SendMessage", `{"message":`+message+config+`}`, &answer)
		if err != nil {
			o.resent++
		}
		return err
	})
	if err == nil && o.run != "" && o.run != answer.Task.ID {
		err = fmt.Errorf("it is answered with task %s", answer.Task.ID)
	}
	o.run = answer.Task.ID
	return answer.Task, err
}

// heardAtLast asks until it is answered, by a server that isn't just beginning.
func (k *a2aKilling) heardAtLast(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		var refused *a2aRefusal
		if err == nil || errors.As(err, &refused) && refused.Code != a2aBusy || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// work is the part that says what a worker is to do.
func (o *a2aOrder) work() string {
	return fmt.Sprintf(`{"data":{"mark":%d,"ticks":%d}}`, o.mark, 3+o.mark%12)
}

func (o *a2aOrder) text(word string) string { return fmt.Sprintf(`{"text":"%s %d"}`, word, o.mark) }

// message is the message that begins the task. All have one id.
func (o *a2aOrder) message(part string) string {
	return `{"messageId":"always the same","role":"ROLE_USER","parts":[` + part + `]}`
}

// answer is the message that answers the task's question.
func (o *a2aOrder) answer() string {
	return fmt.Sprintf(`{"messageId":"the answer","taskId":%q,"role":"ROLE_USER","parts":[{"text":"name-%d"}]}`, o.run, o.mark)
}

// ended wants a task at its good end.
func (o *a2aOrder) ended(task agentTask, err error) error {
	if err != nil || task.Status.State != taskCompleted || len(task.Artifacts) == 0 {
		return fmt.Errorf("its task is %+v: %w", task, err)
	}
	return nil
}

// endedFar is ended for a task elsewhere. It fails where nobody knows whether the agent has its message.
func (o *a2aOrder) endedFar(task agentTask, err error) error {
	if err == nil && task.Status.State == taskFailed {
		return nil // compare looks why
	}
	return o.ended(task, err)
}

// compare holds the run of a task against its order.
func (k *a2aKilling) compare(o *a2aOrder) error {
	record := k.await(o.run)
	far := strings.HasPrefix(o.unit, "far")
	switch {
	case record.Unit != o.unit || record.Retries != 0:
		return fmt.Errorf("it is a run of %s with %d retries", record.Unit, record.Retries)
	case far && record.Outcome == api.SystemError && record.Error.Kind == "unavailable":
		o.unheard = true
		return nil
	case record.Outcome != api.Success:
		return fmt.Errorf("it came to %s: %+v", record.Outcome, record.Error)
	case !strings.Contains(string(record.Output), o.result()):
		return fmt.Errorf("its output is %s", record.Output)
	}
	if far {
		return nil
	}
	if starts, err := k.startsOf(o.run); err != nil || starts != 1 {
		return fmt.Errorf("its program was started %d times: %w", starts, err)
	}
	if o.kind != "push" {
		return nil
	}
	if push := k.pushOf(o.run); push.Deliveries.Lost != 0 {
		return fmt.Errorf("its push is %+v", push)
	}
	return nil
}

// result is what the output of a task tells of its own order.
func (o *a2aOrder) result() string {
	switch o.kind {
	case "question":
		return fmt.Sprintf(`"answer":"name-%d"`, o.mark)
	case "remote", "remote stream":
		return `"waited"`
	case "remote asks":
		return fmt.Sprintf("answered name-%d", o.mark)
	}
	return fmt.Sprintf(`{"mark":%d}`, o.mark)
}

// report is a table of the tasks by kind.
func (k *a2aKilling) report() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	ui.Row(table, "kind", "tasks", "right", "under way at a kill", "kills met", "asked for again", "nobody knows")
	for _, kind := range slices.Sorted(maps.Keys(k.kinds())) {
		var tasks, right, hit, met, resent, unheard int
		for _, o := range k.orders {
			if o.kind != kind {
				continue
			}
			tasks, met, hit, resent = tasks+1, met+o.met, hit+min(o.met, 1), resent+min(o.resent, 1)
			if o.err == nil {
				right++
			}
			if o.unheard {
				unheard++
			}
		}
		ui.Row(table, kind, fmt.Sprint(tasks), fmt.Sprint(right), fmt.Sprint(hit), fmt.Sprint(met), fmt.Sprint(resent), fmt.Sprint(unheard))
	}
	_ = table.Flush()
	return text.String()
}
