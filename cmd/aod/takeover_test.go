package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// Programs of two versions, see `make takeover`: that of an earlier one, whose server is killed, and
// the one that takes its home over.
const (
	oldProgram = "AOD_OLD"
	newProgram = "AOD_NEW"
)

// relayFlow runs three workers in turn. The second one holds.
const relayFlow = `
start: first
nodes:
  first: {run: worker, with: {mark: 1}, set: {first: "${{ out.mark }}"}, next: second}
  second: {run: worker, with: {mark: 2, ticks: 1, hold: 1}, set: {second: "${{ out.mark }}"}, next: third}
  third: {run: worker, with: {mark: 3}, set: {third: "${{ out.mark }}"}, next: end}
output: {first: "${{ state.first }}", second: "${{ state.second }}", third: "${{ state.third }}"}
`

func TestANewVersionGoesOnWithTheHomeOfAKilledOldOne(t *testing.T) {
	t.Parallel()
	old, now := os.Getenv(oldProgram), os.Getenv(newProgram)
	if old == "" || now == "" {
		t.Skipf("%s and %s name no programs: `make takeover` builds them", oldProgram, newProgram)
	}
	c := &takeover{server: newServer(t, "--concurrency", "3"), keys: map[string]client.Submission{}}
	c.addWorker("worker", "")
	c.addCaller("person", personScript)
	c.addTalker("talker", askPeople+keptAlive)
	write(t, "name: relay\nkind: flow\n", c.units, "relay", "agent.yaml")
	write(t, relayFlow, c.units, "relay", "flow.yaml")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, c.units, "relay", "schema.json")
	c.program = old
	c.start()
	c.fill()
	c.kill()
	c.program = now
	c.start()
	c.judge()
}

// takeover is a server whose program changes while it has work of all kinds.
type takeover struct {
	*server
	keys map[string]client.Submission // by the run that each made

	finished api.Record
	log      string // of the finished run
	yearly   api.Schedule
	session  string
	turn     api.Record // of the session, over
	mid      string     // a session within a turn
	midTurn  string     // which waits for a permission
	asking   string     // a run with an open question
	question api.Question
	flow     string // in its second node
	second   string // the run of that node
	held     string // a run whose program goes on
	queued   string
}

// fill gives the server work. At its end three runs have the three slots, and another one waits for one.
func (c *takeover) fill() {
	path := filepath.Join(c.t.TempDir(), "doc")
	write(c.t, "a file that outlives its server\n", path)
	c.finished = c.await(c.keyed(work{Mark: 1, Ticks: 1}, client.InputFile{Field: "doc", Path: path}))
	c.log = c.logOf(c.finished.ID)
	c.session = c.converse("talker")
	c.turn = c.hears(c.session, "one", "heard 1, told 1: one")
	c.mid = c.converse("talker")
	c.midTurn = c.say(c.mid, "may I")
	c.server.question(c.midTurn)
	c.asking = c.server.asking(`{"text":"May I?","kind":"approval"}}`)
	c.question = c.server.question(c.asking)
	c.flow = c.call("relay", `{}`)
	c.second = c.secondCall()
	c.awaitLine(c.second, "tick 1")
	c.held = c.keyed(work{Mark: 2, Ticks: 1, Hold: 1})
	c.awaitLine(c.held, "tick 1")
	c.queued = c.keyed(work{Mark: 3})
	c.yearly = c.put("yearly", api.ScheduleSpec{Unit: "worker", Cron: "@yearly"})
	soon := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano)
	c.put("soon", api.ScheduleSpec{Unit: "worker", At: soon, Missed: api.MissedAll})
	if record := c.record(c.queued); record.State != api.Idle || record.Outcome != "" {
		c.t.Errorf("run %s doesn't wait in the queue: %s %s", c.queued, record.State, record.Outcome)
	}
}

// keyed has a run of the worker accepted, by a key.
func (c *takeover) keyed(w work, files ...client.InputFile) string {
	c.t.Helper()
	sub := client.Submission{
		Unit: "worker", Input: w.input(), Files: files, Key: fmt.Sprint("mark-", w.Mark), Timeout: 5 * time.Minute,
	}
	record, err := c.submit(c.t.Context(), sub)
	if err != nil {
		c.t.Fatal(err)
	}
	c.keys[record.ID] = sub
	return record.ID
}

// secondCall waits for the run of the flow's second node.
func (c *takeover) secondCall() (id string) {
	c.t.Helper()
	testkit.Eventually(c.t, "the flow has come to its second node", func() bool {
		calls := c.callees(c.flow)
		at := slices.IndexFunc(calls, func(run api.Summary) bool { return run.Outcome == "" })
		if len(calls) < 2 || at < 0 {
			return false
		}
		id = calls[at].ID
		return true
	})
	return id
}

func (c *takeover) put(name string, spec api.ScheduleSpec) api.Schedule {
	c.t.Helper()
	spec.Input = work{Mark: 4}.input()
	schedule, _, err := c.client.Schedules.Put(c.t.Context(), name, spec, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return schedule
}

func (c *takeover) record(id string) api.Record {
	c.t.Helper()
	record, err := c.client.Runs.Get(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return record
}

// judge holds that what was there is there, goes on, and comes to its end once.
func (c *takeover) judge() {
	c.judgeStored()
	c.judgeKeys()
	if err := c.client.Questions.Answer(c.t.Context(), c.server.question(c.midTurn).ID, api.Answer{Action: "allow"}); err != nil {
		c.t.Error(err)
	}
	c.replied(c.await(c.midTurn), "heard 1, told 1: may I allow")
	c.approve(c.question)
	c.letGo(c.held, c.second) // the slots are free then
	turn := c.hears(c.session, "two", "heard 2, told 2: two")
	if turn.Container == nil || turn.Container.ID != c.turn.Container.ID || turn.Turn != 2 {
		c.t.Errorf("turn %d is in container %+v, the one before in %+v", turn.Turn, turn.Container, c.turn.Container)
	}
	c.gives(c.held, `{"mark":2}`)
	c.gives(c.queued, `{"mark":3}`)
	c.gives(c.asking, `{"status":200,"answer":{"answer":"approve","option":"approve"}}`)
	c.gives(c.flow, `{"first":1,"second":2,"third":3}`)
	started := []string{c.finished.ID, c.held, c.queued, c.asking, c.occurrence()}
	calls := c.callees(c.flow)
	for _, call := range calls {
		started = append(started, call.ID)
	}
	if len(calls) != 3 {
		c.t.Errorf("the flow has called %d times", len(calls))
	}
	c.allWell(started)
	c.judgeKeys()
	c.onlyThese(append(started, c.flow, c.turn.ID, turn.ID, c.midTurn))
	c.endSession(c.session)
	c.endSession(c.mid)
}

// judgeStored compares what doesn't go on with what it was.
func (c *takeover) judgeStored() {
	record := c.record(c.finished.ID)
	content, err := c.file(record, "copy")
	if err != nil || string(content) != "a file that outlives its server\n" {
		c.t.Errorf("the file of the finished run is %q, %v", content, err)
	}
	yearly, err := c.client.Schedules.Get(c.t.Context(), "yearly")
	if err != nil {
		c.t.Error(err)
	}
	question := c.server.question(c.asking)
	c.question.MayAnswer = question.MayAnswer // an older server doesn't say it
	for what, diff := range map[string]string{
		"the finished run": cmp.Diff(c.finished, record),
		"its log":          cmp.Diff(c.log, c.logOf(record.ID)),
		"the ended turn":   cmp.Diff(c.turn, c.record(c.turn.ID)),
		"the question":     cmp.Diff(c.question, question),
		"the schedule":     cmp.Diff(c.yearly, yearly),
	} {
		if diff != "" {
			c.t.Errorf("%s has changed:\n%s", what, diff)
		}
	}
}

// judgeKeys submits what has a key once more.
func (c *takeover) judgeKeys() {
	for id, sub := range c.keys {
		if again, err := c.client.Runs.Submit(c.t.Context(), sub); err != nil || again.ID != id {
			c.t.Errorf("what made run %s was submitted again and made run %s: %v", id, again.ID, err)
		}
	}
}

func (c *takeover) gives(id, want string) {
	if record := c.await(id); string(record.Output) != want {
		c.t.Errorf("run %s gives %s, not %s: %+v", id, record.Output, want, record.Error)
	}
}

// occurrence waits for the run of the schedule that was soon due, which has one.
func (c *takeover) occurrence() string {
	var all []api.Occurrence
	testkit.Eventually(c.t, "the schedule has a run", func() bool {
		all = nil
		for o, err := range c.client.Schedules.Occurrences(context.Background(), "soon") {
			if err == nil {
				all = append(all, o)
			}
		}
		return len(all) > 0 && all[0].Run != ""
	})
	if len(all) != 1 {
		c.t.Errorf("the schedule has the occurrences %+v", all)
	}
	return all[0].Run
}

// onlyThese holds that the server knows these runs and no other.
func (c *takeover) onlyThese(ids []string) {
	slices.Sort(ids)
	if diff := cmp.Diff(ids, slices.Sorted(maps.Keys(c.records()))); diff != "" {
		c.t.Errorf("its runs are others:\n%s", diff)
	}
}
