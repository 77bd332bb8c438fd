package orchestrator

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
)

func TestHowARunOfAnAgentElsewhereEnds(t *testing.T) {
	t.Parallel()
	w, agent := newFarFixture(t, "retries: 0\n")
	ok := `{"request_id":"$ID","status":"ok","outputs":`
	cases := []struct {
		name     string
		answer   func(http.ResponseWriter, agenthttp.Request)
		outcome  api.Outcome
		category api.Category
		kind     string
		says     string // a part of the message
	}{
		{"it says that it failed", says(200, `{"request_id":"$ID","ok":false,"error":{"message":"no such table"}}`), api.RemoteError, api.CategoryAgent, "remote_error", "the agent says that it failed; in its own words: no such table"},
		{"it warns of its failure", says(200, `{"request_id":"$ID","ok":false,"warnings":["a","b"]}`), api.RemoteError, api.CategoryAgent, "remote_error", "failed; in its own words: a; b"},
		{"it fails with a status, in the contract's shape", says(502, `{"request_id":"$ID","ok":false,"outputs":{},"warnings":["w"]}`), api.RemoteError, api.CategoryAgent, "remote_error", "failed; in its own words: w"},
		{"it says so with a code", says(200, `{"request_id":"$ID","status":"error","outputs":{},"error":{"code":"VALIDATION_ERROR","message":"no\u001b[31m text\nat all"}}`), api.RemoteError, api.CategoryAgent, "remote_error", "in its own words: VALIDATION_ERROR: no [31m text at all"},
		{"a code alone", says(200, `{"request_id":"$ID","status":"error","error":{"code":"VALIDATION_ERROR"}}`), api.RemoteError, api.CategoryAgent, "remote_error", "in its own words: VALIDATION_ERROR"},
		{"a code and a reason that are far too long", says(200, `{"request_id":"$ID","ok":false,"error":{"code":"`+strings.Repeat("C", 1000)+`","message":"`+strings.Repeat("m", 1<<18)+`"}}`), api.RemoteError, api.CategoryAgent, "remote_error", strings.Repeat("C", 200) + "…: mmm"},
		{"it refuses as its framework does", says(422, `{"detail":[{"type":"missing","loc":["body","inputs","text"],"msg":"Field required","input":"secret"}]}`), api.RemoteError, api.CategoryPermanent, "remote_refused", "answers 422; in its own words: body.inputs.text: Field required"},
		{"it is degraded", says(200, `{"request_id":"$ID","status":"degraded","outputs":{"words":1}}`), api.RemoteError, api.CategoryAgent, "remote_error", `the agent's status is "degraded", and only ok and success are a success by themselves: it counts as a failure`},
		{"it breaks", says(500, `oops`), api.RemoteError, api.CategoryAgent, "remote_error", "answers 500"},
		{"it refuses", says(422, `{"detail":{"request_id":"$ID","ok":false,"outputs":{},"warnings":["task_type"]}}`), api.RemoteError, api.CategoryPermanent, "remote_refused", "answers 422; in its own words: task_type"},
		{"it doesn't know us", says(401, ``), api.RemoteError, api.CategoryPermanent, "remote_refused", "answers 401"},
		{"it sends us elsewhere", says(307, ``), api.RemoteError, api.CategoryPermanent, "remote_refused", "answers 307"},
		{"it is busy", says(429, ``), api.RemoteError, api.CategoryTransient, "remote_busy", "answers 429"},
		{"it isn't ready", says(503, ``), api.RemoteError, api.CategoryTransient, "remote_busy", "answers 503"},
		{"a gateway without it", says(502, ``), api.SystemError, api.CategoryTransient, "unavailable", "answers 502"},
		{"its connection breaks", cutsOff, api.SystemError, api.CategoryTransient, "unavailable", "does not answer"},
		{"it breaks a rule", says(200, `{"request_id":"other","status":"ok","outputs":{}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-request-id)"},
		{"no JSON", says(200, `<html>`), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"outputs without a field", says(200, ok+`{}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "the agent's outputs break the contract"},
		{"a field of another type", says(200, ok+`{"words":"three"}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "break the contract at /words"},
		{"a name that stands twice", says(200, ok+`{"words":1,"words":2}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "break the contract"},
		{"outputs that are too large", says(200, ok+`{"words":3,"more":"`+strings.Repeat("x", 1<<20)+`"}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "break the contract"},
		{"an answer that is far too large", says(200, ok+`{"words":3,"more":"`+strings.Repeat("x", 3<<20)+`"}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "more than is taken"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			agent.answers(c.answer)
			before := len(agent.requests())
			record := w.await(w.ask("a"))
			e := record.Error
			if record.Outcome != c.outcome || record.State != api.Failed || e == nil || e.Category != c.category || e.Kind != c.kind || !strings.Contains(e.Message, c.says) || record.ExitCode != nil {
				t.Errorf("record %s", show(record))
			}
			keepsSchema(t, record)
			if n := len(agent.requests()) - before; n != 1 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		writeWords(t, filepath.Join(w.opts.Sources[0], "words"), "http://127.0.0.1:1", "retries: 0\n") // nobody gets this port by chance
		record := w.await(w.ask("a"))
		if e := record.Error; record.Outcome != api.SystemError || e.Category != api.CategoryTransient || e.Kind != "unavailable" || !strings.Contains(e.Message, "refused") {
			t.Errorf("record %s", show(record))
		}
	})
}

func TestAnswersOfAgentsElsewhereThatAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	w, agent := newFarFixture(t, "  stream: true\nretries: 0\n")
	for name, c := range map[string]struct{ data, warning string }{
		"a terminal event without a task type": {`{"request_id":%q,"status":"ok","outputs":{"words":3}}`, ""},
		"a status of its own beside ok":        {`{"request_id":%q,"task_type":"WORDS","status":"degraded","ok":true,"outputs":{"words":3}}`, `the agent's status is "degraded"; it counts as a success because ok or success is true beside it`},
	} {
		t.Run(name, func(t *testing.T) {
			agent.answers(func(w http.ResponseWriter, asked agenthttp.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "event: final\ndata: "+c.data+"\n\n", asked.RequestID)
			})
			record := w.await(w.ask("a"))
			if record.Outcome != api.Success || strings.Join(record.Warnings, "") != c.warning {
				t.Errorf("record %s", show(record))
			}
		})
	}
}
