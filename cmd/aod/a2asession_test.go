package main

import (
	"errors"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
)

// A message with the context alone is the next turn of an agent's session, and one with the task
// answers what that asks.
func TestAConversationOverA2A(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("talker", askPeople+resumable+keptAlive)
	s.start()
	for _, form := range []peertest.Form{peertest.Forms[0], peertest.Forms[3]} {
		t.Run(form.Name(), func(t *testing.T) {
			c := s.taskClient("talker", form)
			c.t = t
			says := func(context, text string) *sdk.Task {
				m := messageOf(sdk.NewTextPart(text))
				m.ContextID = context
				return c.mustSend(m, false)
			}
			first := says("", "one")
			session := first.ContextID
			c.replied(first, session, "heard 1, told 1: one")
			second := says(session, "two")
			c.replied(second, session, "heard 2, told 2: two")
			if record := s.await(string(second.ID)); record.Session != session || record.Turn != 2 || first.ID == second.ID {
				t.Errorf("run %s is turn %d of %q", record.ID, record.Turn, record.Session)
			}
			asks := says(session, "may I")
			if asks.Status.State != sdk.TaskStateInputRequired || asks.Status.Message == nil {
				t.Fatalf("%q", givenBy(asks))
			}
			c.replied(c.mustSend(messageTo(asks.ID, "deny"), false), session, "heard 3, told 3: may I deny")
			s.kill()
			s.start()
			c.replied(says(session, "four"), session, "heard 4, told 4: four")
			if form.Version == "1.0" {
				list, err := c.ListTasks(c.ctx, &sdk.ListTasksRequest{ContextID: session})
				if err != nil || list.TotalSize != 4 || list.Tasks[3].ID != first.ID {
					t.Errorf("%+v %v", list, err)
				}
			}
			if _, err := s.client.Sessions.Close(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			s.closed(session)
			for _, context := range []string{session, "none-of-its"} {
				m := messageOf(sdk.NewTextPart("more"))
				m.ContextID = context
				if task, err := c.send(m, false); err == nil {
					t.Errorf("a message to the context %q: %q", context, givenBy(task))
				} else if context != session && !errors.Is(err, sdk.ErrInvalidParams) {
					t.Errorf("a message to the context %q: %v", context, err)
				}
			}
		})
	}
}

// replied wants the reply of an agent in a task of a context.
func (c *taskClient) replied(task *sdk.Task, context, want string) {
	c.t.Helper()
	got := givenBy(task)
	if task.Status.State != sdk.TaskStateCompleted || task.ContextID != context || len(got) != 2 || got[1] != `output text:`+want+` data:{"text":"`+want+`"}` {
		c.t.Errorf("%q of %q, want %q", got, task.ContextID, want)
	}
}
