package main

import (
	"context"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// personScript asks people what its input says, and gives back what it was answered.
const personScript = `echo started
body=$(< /io/input.json)
asked=${body#*\"ask\":}
persist POST /ask question "${asked%\}}"
if [[ $body == *'"again":true'* ]]; then
	persist POST /ask question '{"text":"Something else?"}'
fi
echo "{\"status\":$status,\"answer\":$answer}" > /io/output.json
`

// asking has a run accepted that asks people.
func (s *server) asking(question string) string { return s.call("person", `{"ask":`+question) }

// question waits for the open question of a run.
func (s *server) question(run string) (found api.Question) {
	s.t.Helper()
	testkit.Eventually(s.t, "the run asks", func() bool {
		for q, err := range s.client.Questions.List(context.Background(), run) {
			found = q
			return err == nil
		}
		return false
	})
	return found
}

func (s *server) approve(q api.Question) {
	s.t.Helper()
	if err := s.client.Questions.Answer(s.t.Context(), q.ID, api.Answer{Action: "approve"}); err != nil {
		s.t.Fatal(err)
	}
}

func newAskServer(t *testing.T) *server {
	s := newInside(t, "--concurrency", "1")
	s.addCaller("person", "")
	s.runs("person", personInside)
	s.start()
	return s
}

func TestAPersonAnswersAProgram(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	run := s.asking(`{"text":"May I?","kind":"approval"}}`)
	q := s.question(run)
	if q.Kind != api.QuestionApproval || q.Text != "May I?" || q.Run != run || q.Until == nil || strings.Join(q.Answers, " ") != "approve reject" {
		t.Errorf("question %+v", q)
	}
	var record api.Record
	var err error
	testkit.Eventually(t, "the run goes on, which its program may be quicker than", func() bool {
		record, err = s.client.Runs.Get(t.Context(), run)
		return err != nil || record.State == api.Running
	})
	if err != nil || record.Question == nil || record.Question.ID != q.ID || record.Question.Kind != q.Kind {
		t.Errorf("record %+v, %v", record, err)
	}
	if shown := s.aod("ps", "--waiting"); !strings.Contains(shown, run) {
		t.Errorf("ps --waiting shows %s", shown)
	}
	if shown := s.aod("questions"); !strings.Contains(shown, "aod answer "+q.ID+" approve") {
		t.Errorf("questions shows %s", shown)
	}
	other := s.asking(`{"text":"And I?","timeout":"10ms"}}`) // its slot is lent
	if got := string(s.await(other).Output); got != `{"status":200,"answer":{"denied":"nobody has answered in time"}}` {
		t.Errorf("a question whose time is up is answered %s", got)
	}
	s.kill()
	s.start()
	if after := s.question(run); after.ID != q.ID {
		t.Errorf("after a restart the question is %s, it was %s", after.ID, q.ID)
	}
	s.aod("answer", run, "approve", "--by", "ada", "--note", "go")
	if got := string(s.await(run).Output); got != `{"status":200,"answer":{"answer":"approve","option":"approve","by":"ada","note":"go"}}` {
		t.Errorf("the program was answered %s", got)
	}
	if shown := s.aod("ps", "--waiting"); strings.Contains(shown, run) {
		t.Errorf("ps --waiting shows %s", shown)
	}
	if shown := s.aod("questions", run); !strings.Contains(shown, "answered approve ") || !strings.Contains(shown, ", as ada by their own word: go") {
		t.Errorf("questions of the run shows %s", shown)
	}
	if shown := s.aod("questions", other); !strings.Contains(shown, "without an answer") {
		t.Errorf("questions of a run whose question was closed shows %s", shown)
	}
	s.toldOfQuestion(run, api.QuestionOpen, api.QuestionAnswered)
	if starts, err := s.startsOf(run); err != nil || starts != 1 {
		t.Errorf("the program was started %d times: %v", starts, err)
	}
}

// toldOfQuestion holds the states of the only question of a run against its events.
func (s *server) toldOfQuestion(run string, want ...api.QuestionState) {
	s.t.Helper()
	var told []api.QuestionState
	for event, err := range s.client.Runs.Events(s.t.Context(), run, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if data, err := event.Decode(); err == nil {
			if question, ok := data.(api.QuestionEvent); ok {
				told = append(told, question.State)
			}
		}
		if strings.Contains(string(event.Data), "May I?") {
			s.t.Errorf("an event tells what is asked: %s", event.Data)
		}
	}
	if len(told) != len(want) {
		s.t.Fatalf("the events tell %v, want %v", told, want)
	}
	for i := range want {
		if told[i] != want[i] {
			s.t.Errorf("the events tell %v, want %v", told, want)
		}
	}
}

func TestAPersonSaysSomething(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	run := s.asking(`{"text":"Who?"}}`)
	s.question(run)
	s.aod("answer", run, "Ada = \"the\" first")
	if got := string(s.await(run).Output); got != `{"status":200,"answer":{"answer":"Ada = \"the\" first"}}` {
		t.Errorf("the program was answered %s", got)
	}
	run = s.asking(`{"text":"How many?","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}`)
	q := s.question(run)
	if err := s.client.Questions.Answer(t.Context(), q.ID, api.Answer{Action: "answer", Form: []byte(`{"n":"x"}`)}); !fault.Is(err, fault.Input) {
		t.Errorf("an answer that breaks the form: %v", err)
	}
	s.aod("answer", run, "answer", "--set", "n=3")
	if got := string(s.await(run).Output); got != `{"status":200,"answer":{"answer":{"n":3}}}` {
		t.Errorf("the program was answered %s", got)
	}
	run = s.asking(`{"text":"How many?","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}`)
	s.question(run)
	s.aod("reject", run)
	if got := string(s.await(run).Output); got != `{"status":200,"answer":{"denied":"a person said no"}}` {
		t.Errorf("the program was answered %s", got)
	}
}

func TestAKeyBelongsToOneQuestion(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	run := s.call("person", `{"again":true,"ask":{"text":"Who?","kind":"auth"}}`)
	s.question(run)
	s.aod("approve", run)
	if got := string(s.await(run).Output); !strings.HasPrefix(got, `{"status":422,`) || !strings.Contains(got, "another question") {
		t.Errorf("another question under the key is answered %s", got)
	}
}

func TestAnUnattendedRunIsDenied(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	record, err := s.submit(t.Context(), client.Submission{Unit: "person", Input: []byte(`{"ask":{"text":"Who?"}}`), Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.await(record.ID).Output); got != `{"status":200,"answer":{"denied":"it asks a person, and was submitted as one that nobody attends to"}}` {
		t.Errorf("the program was answered %s", got)
	}
}

func TestTheQuestionsOfARunCloseWithIt(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	run := s.asking(`{"text":"May I?","kind":"approval"}}`)
	q := s.question(run)
	if _, err := s.client.Runs.Cancel(t.Context(), run, ""); err != nil {
		t.Fatal(err)
	}
	if record := s.await(run); record.Question != nil {
		t.Errorf("its record has the question %+v", record.Question)
	}
	s.toldOfQuestion(run, api.QuestionOpen, api.QuestionClosed)
	if err := s.client.Questions.Answer(t.Context(), q.ID, api.Answer{Action: "approve"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("an answer to no question: %v", err)
	}
}

func TestAnswersOfTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addCaller("person", personScript)
	for _, c := range []struct{ answer, question, want string }{
		{"", `{"ask":{"text":"May I?","kind":"approval"}}`, `"denied":"it asks a person, and nobody is there: May I?"`},
		{"approve", `{"ask":{"text":"May I?","kind":"approval"}}`, `"option":"approve"`},
		{"Ada=1", `{"ask":{"text":"Who?"}}`, `"answer":"Ada=1"`},
		{`{"n":3}`, `{"ask":{"text":"Who?","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, `"answer":{"n":3}`},
		{"maybe", `{"ask":{"text":"May I?","kind":"approval"}}`, `"denied":"\"maybe\" isn't an answer to the question"`},
	} {
		args := []string{"run", s.units + "/person", "--input", c.question}
		if c.answer != "" {
			args = append(args, "--answer", c.answer)
		}
		if got := s.aod(args...); !strings.Contains(got, c.want) {
			t.Errorf("--answer %s gives %s, want %s", c.answer, got, c.want)
		}
	}
}
