package check

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/internal/checklist"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
)

// verdicts are those of a report that aren't a pass, by rule.
func verdicts(t *testing.T, opts Options) map[string]checklist.Result {
	t.Helper()
	r, err := Agent(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]checklist.Result{}
	for _, result := range r.Checks {
		found[result.ID] = result
	}
	if len(found) != len(rules()) {
		t.Errorf("%d rules in the report", len(found))
	}
	return found
}

func TestAGoodAgentFailsNothing(t *testing.T) {
	for _, form := range peertest.Forms {
		for _, streams := range []bool{true, false} {
			far := peertest.New(t, form, streams)
			for id, result := range verdicts(t, Options{Call: a2apeer.Options{URL: far.URL}}) {
				if result.Verdict == checklist.Fail {
					t.Errorf("%s, streams %v: %s: %s", form.Name(), streams, id, result.Why)
				}
			}
			if n := len(far.Messages()); n > 3 {
				t.Errorf("%s: its task ran %d times", form.Name(), n)
			}
		}
	}
}

func TestATaskThatGoesOnIsCancelled(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], false)
	got := verdicts(t, Options{Call: a2apeer.Options{URL: far.URL}, Inputs: []byte(`{"message":"wait"}`), Timeout: 500e6})
	if got["cancel"].Verdict != checklist.Pass || got["send-completed"].Verdict != checklist.Fail || far.Cancels() == 0 {
		t.Errorf("%+v %+v", got["cancel"], got["send-completed"])
	}
}

func TestATaskThatEndsAsItIsToBeCancelledIsNoBreach(t *testing.T) {
	far := peertest.New(t, peertest.Forms[1], false)
	refusal := `{"error":{"code":500,"status":"INTERNAL","message":"it ended"}}`
	far.Gate(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, ":cancel") || len(far.Messages()) < 2 {
			return true
		}
		select {
		case <-far.Release:
		default:
			close(far.Release)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, refusal)
		return false
	})
	got := verdicts(t, Options{Call: a2apeer.Options{URL: far.URL}, Inputs: []byte(`{"message":"wait"}`), Timeout: 2e9})
	if result := got["cancel"]; result.Verdict != checklist.Advice || !strings.Contains(result.Why, "over by itself") {
		t.Errorf("%+v", result)
	}
}

func TestATaskIsLetGoOfALittleAfterItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		failures int64 // of messages to the task that is over
		fails    bool
	}{
		"an agent that takes a moment":  {1, false},
		"an agent that goes on failing": {1 << 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := peertest.New(t, peertest.Forms[1], false)
			var sent atomic.Int64
			far.Gate(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "message:send") {
					return true
				}
				if n := sent.Add(1); n == 1 || n > 1+c.failures {
					return true
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, `{"error":{"code":500,"status":"INTERNAL","message":"still at it"}}`)
				return false
			})
			got := verdicts(t, Options{Call: a2apeer.Options{URL: far.URL}})
			result := got["error-message-ended"]
			if (result.Verdict == checklist.Fail) != c.fails || result.Verdict == checklist.NotApplicable {
				t.Errorf("%+v", result)
			}
		})
	}
}

func TestABreachIsFound(t *testing.T) {
	const secret = "secret-word"
	const good = `{"name":"` + secret + `","description":"d","version":"1","capabilities":{},"defaultInputModes":["t"],"defaultOutputModes":["t"],
		"skills":[{"id":"i","name":"n","description":"d","tags":["t"]}],"supportedInterfaces":[{"url":"$URL/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`
	const done = `{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}},"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`
	for name, c := range map[string]struct{ card, answer, rule, says string }{
		"a card that is none":                {`[]`, done, "card", "rule card"},
		"a card of another origin":           {strings.ReplaceAll(good, "$URL", "http://127.0.0.1:1"), done, "card", "rule card-origin"},
		"a card without modes":               {strings.Replace(good, "defaultInputModes", "x", 1), done, "card-members", "defaultInputModes is missing"},
		"a skill without tags":               {strings.Replace(good, "tags", "x", 1), done, "card-skills", "in skill 1 of 1: tags"},
		"an answer that is none":             {good, `{"jsonrpc":"2.0","result":"` + secret + `"}`, "send", "rule answer"},
		"nothing refused":                    {good, done, "error-not-json", "no error of JSON-RPC"},
		"unknown methods taken":              {good, done, "error-unknown-method", "no error of JSON-RPC"},
		"unknown tasks known":                {good, done, "error-unknown-task", "rule task-id"},
		"ended tasks that are cancelled":     {good, done, "error-cancel-ended", "not refused"},
		"ended tasks that take messages":     {good, done, "error-message-ended", "not refused"},
		"another error than is the protocol": {good, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"` + secret + `"}}`, "send", "INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			var s *httptest.Server
			s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, ".json") {
					_, _ = io.WriteString(w, strings.ReplaceAll(c.card, "$URL", s.URL))
					return
				}
				_, _ = io.WriteString(w, c.answer)
			}))
			t.Cleanup(s.Close)
			got := verdicts(t, Options{Call: a2apeer.Options{URL: s.URL, Token: "s3cret"}})
			if result := got[c.rule]; result.Verdict != checklist.Fail || !strings.Contains(result.Why, c.says) {
				t.Errorf("%+v", result)
			}
			for _, result := range got {
				if strings.Contains(result.Why, secret) || strings.Contains(result.Why, "s3cret") {
					t.Errorf("the report has a word of the agent's: %s", result.Why)
				}
			}
		})
	}
}
