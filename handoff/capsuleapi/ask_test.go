package capsuleapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
)

func TestWhatPeopleAreAsked(t *testing.T) {
	t.Parallel()
	const form = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	cases := map[string]struct {
		body string
		want handoff.Question
	}{
		"a text":            {`{"text":"Who?"}`, handoff.Question{Kind: api.QuestionInput, Options: []string{handoff.Reply, handoff.Reject}, Schema: []byte(textForm)}},
		"a form":            {`{"text":"Who?","schema":` + form + `}`, handoff.Question{Kind: api.QuestionInput, Options: []string{handoff.Reply, handoff.Reject}, Schema: []byte(form)}},
		"a choice":          {`{"text":"Who?","options":["a","b"]}`, handoff.Question{Kind: api.QuestionInput, Options: []string{"a", "b"}}},
		"an approval":       {`{"text":"Who?","kind":"approval"}`, handoff.Question{Kind: api.QuestionApproval, Options: []string{handoff.Approve, handoff.Reject}}},
		"access":            {`{"text":"Who?","kind":"auth","schema":null}`, handoff.Question{Kind: api.QuestionAuth, Options: []string{handoff.Approve, handoff.Reject}}},
		"options of an own": {`{"text":"Who?","kind":"approval","options":["once"]}`, handoff.Question{Kind: api.QuestionApproval, Options: []string{"once"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			answered[askAnswer](t, w.do(http.MethodPost, "/ask", c.body, "Idempotency-Key: k"), http.StatusOK)
			got := w.runs.Questions[0]
			if left := time.Until(got.Until); left < questionTime-time.Minute || left > questionTime {
				t.Errorf("it is open for %v", left)
			}
			got.Until = time.Time{}
			c.want.Text, c.want.Key = "Who?", "k"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(w.log.String(), "Who?") {
				t.Error("the log has the question")
			}
		})
	}
}

func TestAQuestionIsOpenNoLongerThanItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller.Deadline = time.Now().Add(time.Minute).UTC()
	w.renew()
	for _, body := range []string{`{"text":"Who?","timeout":"1h"}`, `{"text":"Who?","timeout":"10s"}`} {
		answered[askAnswer](t, w.do(http.MethodPost, "/ask", body), http.StatusOK)
	}
	if got := w.runs.Questions; !got[0].Until.Equal(w.caller.Deadline) || time.Until(got[1].Until) > 10*time.Second {
		t.Errorf("open until %v and %v, the run until %v", got[0].Until, got[1].Until, w.caller.Deadline)
	}
}

func TestWhatAProgramIsAnswered(t *testing.T) {
	t.Parallel()
	const form = `,"schema":{"type":"object"}`
	cases := map[string]struct {
		more   string
		answer handoff.Answer
		want   string
	}{
		"a text":                  {``, handoff.Answer{Option: handoff.Reply, Filled: map[string]any{"answer": "Ada"}, By: "b", Note: "n"}, `{"answer":"Ada","by":"b","note":"n"}`},
		"a text that is empty":    {``, handoff.Answer{Option: handoff.Reply, Filled: map[string]any{"answer": ""}}, `{"answer":""}`},
		"a form":                  {form, handoff.Answer{Option: handoff.Reply, Filled: map[string]any{"n": int64(1)}}, `{"answer":{"n":1}}`},
		"no":                      {``, handoff.Answer{Option: handoff.Reject, By: "b"}, `{"by":"b","denied":"a person said no"}`},
		"an approval":             {`,"kind":"approval"`, handoff.Answer{Option: handoff.Approve}, `{"answer":"approve","option":"approve"}`},
		"no approval":             {`,"kind":"approval"`, handoff.Answer{Option: handoff.Reject, Note: "n"}, `{"note":"n","denied":"a person said no"}`},
		"a choice":                {`,"options":["a","reject"]`, handoff.Answer{Option: "a"}, `{"answer":"a","option":"a"}`},
		"a choice to reject":      {`,"options":["a","reject"]`, handoff.Answer{Option: "reject"}, `{"answer":"reject","option":"reject"}`},
		"a choice with a form":    {`,"options":["a"]` + form, handoff.Answer{Option: "a", Filled: map[string]any{"n": int64(1)}}, `{"answer":{"n":1},"option":"a"}`},
		"nobody who could answer": {``, handoff.Answer{Denied: "nobody is there"}, `{"denied":"nobody is there"}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.runs.Answer = c.answer
			got := w.do(http.MethodPost, "/ask", `{"text":"Who?"`+c.more+`}`)
			if got.Code != http.StatusOK || strings.TrimSpace(got.Body.String()) != c.want {
				t.Errorf("%d %s, want %s", got.Code, got.Body, c.want)
			}
		})
	}
}

func TestWhatIsNoQuestion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body   string
		status int
	}{
		"no text":                 {`{}`, http.StatusUnprocessableEntity},
		"a text too long":         {`{"text":"` + strings.Repeat("x", maxQuestion+1) + `"}`, http.StatusUnprocessableEntity},
		"a kind that is none":     {`{"text":"Who?","kind":"order"}`, http.StatusUnprocessableEntity},
		"an empty option":         {`{"text":"Who?","options":["a",""]}`, http.StatusUnprocessableEntity},
		"an option twice":         {`{"text":"Who?","options":["a","a"]}`, http.StatusUnprocessableEntity},
		"an option of two lines":  {`{"text":"Who?","options":["a\nb"]}`, http.StatusUnprocessableEntity},
		"too many options":        {`{"text":"Who?","options":["` + strings.Join(strings.Split(strings.Repeat("a", maxOptions+1), ""), `","`) + `"]}`, http.StatusUnprocessableEntity},
		"a schema of a number":    {`{"text":"Who?","schema":{"type":"number"}}`, http.StatusUnprocessableEntity},
		"a schema that is a text": {`{"text":"Who?","schema":"object"}`, http.StatusUnprocessableEntity},
		"a schema that is wrong":  {`{"text":"Who?","schema":{"type":"object","properties":1}}`, http.StatusUnprocessableEntity},
		"a timeout too long":      {`{"text":"Who?","timeout":"1000h"}`, http.StatusUnprocessableEntity},
		"a timeout that is none":  {`{"text":"Who?","timeout":"soon"}`, http.StatusBadRequest},
		"a field too many":        {`{"text":"Who?","form":{}}`, http.StatusBadRequest},
		"no object":               {`[]`, http.StatusBadRequest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if got := w.do(http.MethodPost, "/ask", c.body); got.Code != c.status || len(w.runs.Questions) > 0 {
				t.Errorf("%d %s, want %d", got.Code, got.Body, c.status)
			}
		})
	}
}
