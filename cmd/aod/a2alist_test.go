package main

import (
	"slices"
	"strconv"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// The tasks of a list: most end, every twentieth asks something, and every twentieth fails. The long form
// has a thousand of them: make long
const usualListed = 200

func TestPagesOfManyTasksWhileTheyChange(t *testing.T) {
	t.Parallel()
	listedTasks := usualListed
	if number(t, "AOD_LOAD", 0) > 0 {
		listedTasks = 1000
	}
	s := newServer(t, "--queue", strconv.Itoa(listedTasks))
	s.program = shipped.Path(t)
	s.addTasks("tasks")
	s.start()
	c := s.taskClient("tasks", peertest.Forms[0])
	c.beginMany(listedTasks)
	whole := c.atRest()
	if ids := tasksOf(whole); len(ids) != listedTasks || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != listedTasks {
		t.Fatalf("%d tasks are listed", len(ids))
	}
	late := time.Now().UTC()
	for range listedTasks / 50 {
		c.changeSome() // one after the other, so that it is known which changed last
	}
	for _, l := range []struct {
		name string
		ask  sdk.ListTasksRequest
		is   func(*sdk.Task) bool
	}{
		{"all", sdk.ListTasksRequest{PageSize: 97}, func(*sdk.Task) bool { return true }},
		{"by context", sdk.ListTasksRequest{ContextID: "group-1", PageSize: 40}, func(task *sdk.Task) bool { return task.ContextID == "group-1" }},
		{"since a time", sdk.ListTasksRequest{StatusTimestampAfter: &late, PageSize: 20}, func(task *sdk.Task) bool { return task.Status.Timestamp.After(late) }},
		{"completed", sdk.ListTasksRequest{Status: sdk.TaskStateCompleted, PageSize: 100}, inState(sdk.TaskStateCompleted)},
		{"failed", sdk.ListTasksRequest{Status: sdk.TaskStateFailed, PageSize: 11}, inState(sdk.TaskStateFailed)},
		{"completed, by context", sdk.ListTasksRequest{ContextID: "group-2", Status: sdk.TaskStateCompleted, PageSize: 30}, func(task *sdk.Task) bool {
			return task.ContextID == "group-2" && task.Status.State == sdk.TaskStateCompleted
		}},
	} {
		t.Run(l.name, func(t *testing.T) {
			c.t = t
			want := tasksOf(slices.DeleteFunc(c.atRest(), func(task *sdk.Task) bool { return !l.is(task) }))
			got := tasksOf(c.pages(&l.ask, func() { c.changeSome() }))
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("%d tasks are listed: %s", len(got), diff)
			}
		})
	}
	t.Run("those that changed last are the first", func(t *testing.T) {
		c.t = t
		latest := func(a, b *sdk.Task) int { return b.Status.Timestamp.Compare(*a.Status.Timestamp) }
		if list := c.pages(&sdk.ListTasksRequest{StatusTimestampAfter: &late}, nil); len(list) < listedTasks/10 || !slices.IsSortedFunc(list, latest) {
			t.Errorf("%d tasks are listed, or not in their order", len(list))
		}
	})
	t.Run("those that ask", func(t *testing.T) {
		c.t = t
		want := slices.DeleteFunc(c.atRest(), func(task *sdk.Task) bool { return !inState(sdk.TaskStateInputRequired)(task) })
		var answered []sdk.TaskID
		got := tasksOf(c.pages(&sdk.ListTasksRequest{Status: sdk.TaskStateInputRequired, PageSize: 5}, func() {
			answered = append(answered, c.changeSome()...)
		}))
		still := slices.DeleteFunc(tasksOf(want), func(id sdk.TaskID) bool { return slices.Contains(answered, id) && !slices.Contains(got, id) })
		if diff := cmp.Diff(still, got); diff != "" || len(got) < 5 {
			t.Errorf("%d tasks are listed: %s", len(got), diff)
		}
	})
	c.t = t
	for _, task := range c.pages(&sdk.ListTasksRequest{Status: sdk.TaskStateInputRequired, PageSize: 100}, nil) {
		c.mustSend(messageTo(task.ID, "reject"), false)
	}
}

func inState(state sdk.TaskState) func(*sdk.Task) bool {
	return func(task *sdk.Task) bool { return task.Status.State == state }
}

func tasksOf(tasks []*sdk.Task) (ids []sdk.TaskID) {
	for _, task := range tasks {
		ids = append(ids, task.ID)
	}
	return ids
}

// beginMany begins tasks of three contexts.
func (c *taskClient) beginMany(n int) {
	c.t.Helper()
	began := time.Now()
	var clients errgroup.Group
	clients.SetLimit(16)
	for i := range n {
		clients.Go(func() error {
			m := doing("end")
			switch i % 20 {
			case 3:
				m = doing("ask")
			case 7:
				m = doing("fail")
			}
			m.ContextID = "group-" + strconv.Itoa(i%3)
			_, err := c.send(m, true)
			return err
		})
	}
	if err := clients.Wait(); err != nil {
		c.t.Error(err)
	}
	c.t.Logf("%d tasks were accepted in %v", n, time.Since(began).Round(time.Millisecond))
}

// atRest are all tasks when each has ended or asks something, and none changes any more.
func (c *taskClient) atRest() (tasks []*sdk.Task) {
	c.t.Helper()
	var before []string
	testkit.Eventually(c.t, "all tasks have ended or ask something", func() bool {
		tasks = c.pages(&sdk.ListTasksRequest{PageSize: 100}, nil)
		var now []string
		for _, task := range tasks {
			now = append(now, string(task.ID)+statusLine(task.Status))
		}
		moving := slices.ContainsFunc(tasks, func(task *sdk.Task) bool {
			return task.Status.State == sdk.TaskStateSubmitted || task.Status.State == sdk.TaskStateWorking
		})
		still := !moving && slices.Equal(before, now)
		before = now
		return still
	})
	return tasks
}

// pages are the tasks of all pages. Between two of them something else is done; nil: nothing.
func (c *taskClient) pages(ask *sdk.ListTasksRequest, between func()) (tasks []*sdk.Task) {
	c.t.Helper()
	next := *ask
	total := -1
	for {
		page, err := c.ListTasks(c.ctx, &next)
		if err != nil {
			c.t.Fatal(err)
		}
		tasks = append(tasks, page.Tasks...)
		if total >= 0 && page.TotalSize != total {
			c.t.Errorf("a page tells of %d tasks, and the one before it of %d", page.TotalSize, total)
		}
		total = page.TotalSize
		if next.PageToken = page.NextPageToken; next.PageToken == "" {
			return tasks
		}
		if len(page.Tasks) != page.PageSize {
			c.t.Errorf("a page that isn't the last has %d tasks, not %d", len(page.Tasks), page.PageSize)
		}
		if between != nil {
			between()
		}
	}
}

// changeSome ends two tasks that ask something, one new and one old, and begins three others. It
// returns those that it has ended.
func (c *taskClient) changeSome() []sdk.TaskID {
	c.t.Helper()
	asking, err := c.ListTasks(c.ctx, &sdk.ListTasksRequest{Status: sdk.TaskStateInputRequired, PageSize: 100})
	if err != nil || len(asking.Tasks) < 2 {
		c.t.Fatalf("%d tasks ask something, %v", len(asking.Tasks), err)
	}
	ends := []sdk.TaskID{asking.Tasks[0].ID, asking.Tasks[len(asking.Tasks)-1].ID}
	for _, id := range ends {
		c.mustSend(messageTo(id, "approve"), false)
	}
	for _, what := range []string{"ask", "ask", "end"} {
		c.mustSend(doing(what), false)
	}
	return ends
}
