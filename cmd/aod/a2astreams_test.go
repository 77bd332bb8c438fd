package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// taskFlow needs no container: a task ends at once, fails, or asks something.
const taskFlow = `start: choose
nodes:
  choose: {action: '${{ input.does }}', next: {end: end, ask: ask}}
  ask: {ask: "Enough?", next: {approve: end, reject: end}}
`

// addTasks adds a unit whose tasks need no container.
func (s *server) addTasks(name string) {
	s.t.Helper()
	write(s.t, "name: "+name+"\nkind: flow\n", s.units, name, "agent.yaml")
	write(s.t, taskFlow, s.units, name, "flow.yaml")
	write(s.t, `{"input": {"type": "object", "properties": {"does": {"type": "string"}}, "required": ["does"]}, "output": {"type": "object"}}`,
		s.units, name, "schema.json")
	s.env = append(s.env, "DOCKER_HOST=unix:///"+filepath.Join(s.data, "none.sock"))
}

func doing(what string) *sdk.Message {
	return messageOf(sdk.NewDataPart(map[string]any{"does": what}))
}

// What any number of streams up to mostStreams of the protocol at once may take.
const streamsMemory = 40 // MiB

func TestManyStreamsOfA2ATakeLittleAndLeaveNothing(t *testing.T) {
	n, rounds := 25, 2
	if number(t, "AOD_LOAD", 0) > 0 {
		n, rounds = mostStreams, 5
	}
	s := newServer(t, "--queue", strconv.Itoa(2*mostStreams))
	s.program = shipped.Path(t)
	s.addTasks("tasks")
	s.start()
	c, rest := s.taskClient("tasks", peertest.Forms[0]), s.taskClient("tasks", peertest.Forms[1])
	l := &streaming{load: load{server: s, http: c.web}, n: n}
	for range 20 { // what the first ones make once
		c.mustSend(doing("end"), false)
	}
	before, memoryBefore := l.footprint(), l.resident()
	check := func(what string) {
		t.Helper()
		more := l.resident() - memoryBefore
		t.Logf("%s: %.1f MiB more than the %.1f before", what, more, memoryBefore)
		if more > streamsMemory {
			t.Errorf("%s take %.1f MiB", what, more)
		}
	}

	task := c.mustSend(doing("ask"), false)
	stay := rest.subscribers(task.ID, 3)
	beside := l.footprint()
	for round := range rounds {
		c.comeAndLeave(task.ID, l.n, func() { check(fmt.Sprintf("%d streams at once, %d clients having left", l.n, round*l.n)) })
		l.quiet(beside)
	}
	c.mustSend(messageTo(task.ID, "approve"), false)
	var first []string
	for events := range stay {
		told := tellings(events)
		if first == nil {
			first = told
		}
		if diff := cmp.Diff(first, told); diff != "" || len(told) < 3 {
			t.Errorf("those who stay are told %q: %s", told, diff)
		}
	}
	rest.web.CloseIdleConnections()
	l.quiet(before)

	for _, events := range c.holdStreams(l.n) {
		ends := 0
		for _, event := range events {
			if update, ok := event.(*sdk.TaskStatusUpdateEvent); ok && update.Status.State.Terminal() {
				ends++
			}
		}
		if last := events[len(events)-1]; ends != 1 || folded([]sdk.Event{last}).Status.State != sdk.TaskStateCompleted {
			t.Errorf("a stream tells %d ends, the last event is %q", ends, tellingOf(last))
		}
	}
	t.Logf("%d tasks, each begun with a stream: %.1f MiB more, %d at most", l.n, l.resident()-memoryBefore, l.peakMemory()>>20)
	l.quiet(before)
}

// quiet waits until the server has no more goroutines than before, but for spared connections.
func (l *streaming) quiet(before footprint) {
	l.t.Helper()
	var now footprint
	testkit.Eventually(l.t, fmt.Sprintf("the server has no more than %+v", before), func() bool {
		now = l.footprint()
		return now.goroutines <= before.goroutines+2*idleConnections
	})
}

// holdStreams begins tasks that ask something, each with a stream, and answers when all ask. It
// returns what each stream told.
func (c *taskClient) holdStreams(n int) [][]sdk.Event {
	c.t.Helper()
	told := make([][]sdk.Event, n)
	asked := make(chan sdk.TaskID, n)
	var streams sync.WaitGroup
	for i := range n {
		streams.Go(func() {
			known := false
			defer func() {
				if !known {
					asked <- ""
				}
			}()
			for event, err := range c.SendStreamingMessage(c.ctx, &sdk.SendMessageRequest{Message: doing("ask")}) {
				if err != nil {
					c.t.Errorf("stream %d: %v", i, err)
					return
				}
				told[i] = append(told[i], event)
				if task := folded([]sdk.Event{event}); task.Status.State == sdk.TaskStateInputRequired && !known {
					known = true
					asked <- event.(sdk.TaskInfoProvider).TaskInfo().TaskID
				}
			}
		})
	}
	var ids []sdk.TaskID
	for range n {
		ids = append(ids, <-asked)
	}
	if slices.Contains(ids, "") {
		c.t.FailNow()
	}
	for _, id := range ids {
		c.mustSend(messageTo(id, "approve"), true)
	}
	streams.Wait()
	return told
}

// subscribers subscribe to a task, and yield what they were told when it has ended.
func (c *taskClient) subscribers(id sdk.TaskID, n int) <-chan []sdk.Event {
	c.t.Helper()
	told, begun := make(chan []sdk.Event, n), make(chan bool, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			var events []sdk.Event
			for event, err := range c.SubscribeToTask(c.ctx, &sdk.SubscribeToTaskRequest{ID: id}) {
				if err != nil {
					c.t.Error(err)
					break
				}
				if events = append(events, event); len(events) == 1 {
					begun <- true
				}
			}
			if len(events) == 0 {
				begun <- false
			}
			told <- events
		})
	}
	for range n {
		<-begun
	}
	go func() { all.Wait(); close(told) }()
	return told
}

// comeAndLeave has clients subscribe to a task, all at once, does something when all are there, and
// has them leave.
func (c *taskClient) comeAndLeave(id sdk.TaskID, n int, meanwhile func()) {
	c.t.Helper()
	ctx, leave := context.WithCancel(c.ctx)
	defer leave()
	var clients, begun sync.WaitGroup
	begun.Add(n)
	for range n {
		clients.Go(func() {
			there := false
			for _, err := range c.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: id}) {
				if !there {
					there = true
					begun.Done()
				}
				if err != nil && ctx.Err() == nil {
					c.t.Error(err)
				}
			}
			if !there {
				c.t.Error("a subscriber is told nothing")
				begun.Done()
			}
		})
	}
	begun.Wait()
	meanwhile()
	leave()
	clients.Wait()
}
