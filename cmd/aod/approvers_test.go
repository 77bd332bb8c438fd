package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// releasing asks the team legal and the token cfo, and shows one of the two files that it has.
const releasing = `
start: make
nodes:
  make: {run: writer, with: {text: x}, set: {report: "${{ out.report }}"}, next: decide}
  decide:
    ask: Release it?
    show: {report: "${{ state.report }}"}
    approvers: [team:legal, token:cfo]
    next: {approve: end, reject: end}
output: {ok: true}
`

// approving is a server with a flow that names who answers, and with somebody of each kind.
func approving(t *testing.T) *walled {
	w := newWalled(t, func(c *config.Config) {
		for name, text := range map[string]string{
			"agent.yaml":  "name: release\nkind: flow\n",
			"schema.json": `{"input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}}, "output": {"type": "object"}}`,
			"flow.yaml":   releasing,
		} {
			write(t, text, c.Units[0], "release", name)
		}
	})
	w.keys["server"] = w.key
	w.add("ops", access.Admin)
	w.inTeam("ada", "a", access.Read, access.Run)
	w.inTeam("seer", "a", access.Read)
	w.inTeam("alf", "a", access.Approve)
	w.inTeam("bob", "b", access.Read, access.Run, access.Approve)
	w.inTeam("lea", "legal", access.Approve)
	w.inTeam("cfo", "c", access.Read, access.Run)
	return w
}

// releases has ada begin a run, with a file of hers, and returns what it asks as somebody sees it.
func (w *walled) releases(who string) api.Question {
	w.Helper()
	body := "--x\r\nContent-Disposition: form-data; name=\"unit\"\r\n\r\nrelease\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"doc\"; filename=\"hers.txt\"\r\n\r\nprivate\r\n--x--\r\n"
	status, answer := w.asks("ada", http.MethodPost, "/v1/runs", body, "Content-Type: multipart/form-data; boundary=x")
	var run api.Record
	if err := json.Unmarshal([]byte(answer), &run); err != nil || status != http.StatusAccepted {
		w.Fatalf("%d %s", status, answer)
	}
	var open []api.Question
	testkit.Eventually(w, "it asks", func() bool {
		open = w.questionsOf(who, "run="+run.ID)
		return len(open) == 1
	})
	return open[0]
}

// questionsOf lists questions as the token of a name sees them.
func (w *walled) questionsOf(name, query string) []api.Question {
	w.Helper()
	status, answer := w.asks(name, http.MethodGet, "/v1/questions?"+query, "")
	var page api.QuestionPage
	if err := json.Unmarshal([]byte(answer), &page); err != nil || status != http.StatusOK {
		w.Fatalf("%s: %d %s", name, status, answer)
	}
	return page.Questions
}

func TestOnlyAnApproverAnswers(t *testing.T) {
	w := approving(t)
	q := w.releases("ada")
	if q.MayAnswer || !slices.Equal(q.Approvers, []string{"team:legal", "token:cfo"}) {
		t.Errorf("ada is shown %+v", q)
	}
	to, yes := "/v1/questions/"+q.ID, `{"action": "approve", "by": "lea"}`
	for _, c := range []struct {
		who     string
		status  int
		headers []string
		audited string // what the audit has of it; "": a count of the route
	}{
		{"ada", 403, nil, "token:ada answer question " + q.ID + " 403 1"},
		{"alf", 403, nil, "token:alf answer question " + q.ID + " 403 1"},
		{"ops", 403, nil, "token:ops answer question " + q.ID + " 403 1"},
		{"ops", 403, []string{"Aod-Team: legal"}, ""}, // which would make it nobody's approver, and sees nothing of a
		{"server", 403, nil, "operator answer question " + q.ID + " 403 1"},
		{"bob", 404, nil, "token:bob post route /v1/questions/:id 404 1"},
		{"seer", 403, nil, "token:seer post route /v1/questions/:id 403 1"},
	} {
		if len(c.headers) > 0 {
			c.status = 404
		}
		before := w.audited("server", "")
		status, answer := w.asks(c.who, http.MethodPost, to, yes, c.headers...)
		if status != c.status {
			t.Errorf("%s %v: %d %s", c.who, c.headers, status, answer)
		}
		if fresh := w.audited("server", "")[len(before):]; c.audited != "" && !slices.Equal(fresh, []string{c.audited}) {
			t.Errorf("%s: the audit has %q", c.who, fresh)
		}
		if status == 403 && c.who != "seer" && !strings.Contains(answer, "team:legal, token:cfo") {
			t.Errorf("%s isn't told who may: %s", c.who, answer)
		}
	}
	if rows := w.audited("server", "&object="+q.ID); len(rows) != 4 {
		t.Errorf("of the question the audit has %q", rows)
	}
	if status, answer := w.asks("lea", http.MethodPost, to, yes); status != 204 {
		t.Errorf("lea: %d %s", status, answer)
	}
	if status, answer := w.asks("lea", http.MethodPost, to, yes); status != 204 {
		t.Errorf("lea, again: %d %s", status, answer)
	}
	if rows := w.audited("server", "&object="+q.ID); len(rows) != 5 || rows[4] != "token:lea answer question "+q.ID+" done 1" {
		t.Errorf("of the question the audit has %q", rows)
	}
	all := w.questionsOf("ada", "all=true&run="+q.Run)
	if len(all) != 1 || all[0].Answered == nil || all[0].Answered.Token != "lea" {
		t.Errorf("%+v", all)
	}
	if second := w.releases("cfo"); !second.MayAnswer {
		t.Errorf("cfo is shown %+v", second)
	} else if status, answer := w.asks("cfo", http.MethodPost, "/v1/questions/"+second.ID, yes); status != 204 {
		t.Errorf("cfo: %d %s", status, answer)
	}
}

func TestAnApproverOfAnotherTeamSeesTheQuestionAlone(t *testing.T) {
	w := approving(t)
	q := w.releases("lea")
	if len(q.Files) != 1 || q.Files[0].Name != "report.txt" || !q.MayAnswer || !strings.Contains(string(q.Show), q.Files[0].SHA256) {
		t.Fatalf("%+v", q)
	}
	at, run := "/v1/questions/"+q.ID, "/v1/runs/"+q.Run
	for _, who := range []string{"lea", "cfo"} {
		for path, want := range map[string]string{at: `"text":"Release it?"`, at + "/files/report.txt": "canary"} {
			if status, answer := w.asks(who, http.MethodGet, path, ""); status != 200 || !strings.Contains(answer, want) {
				t.Errorf("%s: %s is %d %s", who, path, status, answer)
			}
		}
		for _, query := range []string{"", "mine=true", "run=" + q.Run + "&all=true"} {
			if list := w.questionsOf(who, query); len(list) != 1 || list[0].ID != q.ID {
				t.Errorf("%s is shown %+v by %q", who, list, query)
			}
		}
		for _, path := range []string{at + "/files/hers.txt", at + "/files/doc/hers.txt", at + "/files/input.json"} {
			if status, answer := w.asks(who, http.MethodGet, path, ""); status != 404 {
				t.Errorf("%s: %s is %d %s", who, path, status, answer)
			}
		}
	}
	for _, path := range []string{"", "/tree", "/output", "/files", "/files/report.txt", "/logs", "/events", "/pushes", "/models", "/flow", "/steps", "/state", "/state/files/report.txt", "/changes", "/changes.patch", "/messages", "/artifacts"} {
		if status, answer := w.asks("cfo", http.MethodGet, run+path, ""); status != 404 {
			t.Errorf("cfo is told of %s%s: %d %s", run, path, status, answer)
		}
		if status, answer := w.asks("lea", http.MethodGet, run+path, ""); status != 403 {
			t.Errorf("lea is told of %s%s: %d %s", run, path, status, answer)
		}
	}
	for path, body := range map[string]string{"/cancel": `{}`, "/rerun": `{}`, "/messages": `{"text": "hi"}`} {
		if status, answer := w.asks("cfo", http.MethodPost, run+path, body); status != 404 {
			t.Errorf("cfo may %s%s: %d %s", run, path, status, answer)
		}
	}
	for query, answer := range map[string]string{"/v1/runs": q.Run, "/v1/runs?waiting=true": q.Run, "/v1/stats": "release", "/v1/runs/counts": `"runs":1`} {
		if _, told := w.asks("cfo", http.MethodGet, query, ""); strings.Contains(told, answer) {
			t.Errorf("cfo is told of it by %s: %s", query, told)
		}
	}
	for who, want := range map[string]string{"cfo": "question " + q.ID, "bob": ""} {
		if told := w.hearsOf(who, q.Run); told != want {
			t.Errorf("the news tell %s of %q", who, told)
		}
	}
	for _, path := range []string{at, at + "/files/report.txt"} {
		if status, answer := w.asks("bob", http.MethodGet, path, ""); status != 404 {
			t.Errorf("bob: %s is %d %s", path, status, answer)
		}
	}
	for _, query := range []string{"", "mine=true", "run=" + q.Run + "&all=true", "run=" + q.Run + "&all=true&limit=1"} {
		status, answer := w.asks("bob", http.MethodGet, "/v1/questions?"+query, "")
		if status != 200 || !strings.Contains(answer, `{"questions":[],"next":null}`) {
			t.Errorf("bob by %q: %d %s", query, status, answer)
		}
	}
	for _, who := range []string{"ada", "alf", "ops", "server"} {
		if list := w.questionsOf(who, "mine=true"); len(list) != 0 {
			t.Errorf("of %s's are %+v", who, list)
		}
	}
}

// hearsOf returns the things of a run of which the news tell the token of a name, up to a run of its own.
func (w *walled) hearsOf(name, run string) string {
	w.Helper()
	stream := w.begins(name, http.MethodGet, "/v1/events?after=0", "")
	defer stream.Body.Close()
	var things []string
	mark := w.begun(name, "x")
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		var one api.News
		if !is || json.Unmarshal([]byte(data), &one) != nil {
			continue
		}
		if one.ID == mark {
			return strings.Join(things, ", ")
		}
		if strings.Contains(data, run) && !slices.Contains(things, string(one.Noun)+" "+one.ID) {
			things = append(things, string(one.Noun)+" "+one.ID)
		}
		if one.Noun == api.NewsQuestion && one.Root != "" {
			w.Errorf("%s is told of the tree %s", name, one.Root)
		}
	}
	w.Fatal("the news ended")
	return ""
}

// The scope approve has the questions of its team, and nothing else.
func TestTheScopeApprove(t *testing.T) {
	w := approving(t)
	q := w.releases("alf")
	if q.MayAnswer || len(q.Files) != 1 {
		t.Errorf("%+v", q)
	}
	for _, path := range []string{"/v1/runs", "/v1/runs/" + q.Run, "/v1/units", "/v1/events", "/v1/stats", "/v1/audit", "/metrics"} {
		if status, answer := w.asks("alf", http.MethodGet, path, ""); status != 403 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, answer := w.asks("alf", http.MethodPost, "/v1/runs", `{"unit": "writer"}`); status != 403 {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := w.asks("alf", http.MethodPost, "/v1/runs/"+q.Run+"/cancel", `{}`); status != 403 {
		t.Errorf("%d %s", status, answer)
	}
}

func TestACommandTellsWhoAnswers(t *testing.T) {
	w := approving(t)
	q := w.releases("ada")
	said := func(who string, args ...string) string {
		out := &testkit.Log{}
		dir := t.TempDir()
		write(t, w.keys[who], dir, "token")
		told := &ui.Output{Writer: out, FD: -1}
		newApp(strings.NewReader(""), told, told).run(t.Context(), append([]string{"--server", w.url, "--token-file", filepath.Join(dir, "token")}, args...))
		return out.String()
	}
	const alone = "answered by team:legal, token:cfo alone"
	if got := said("ada", "questions"); !strings.Contains(got, alone) || strings.Contains(got, "aod answer") {
		t.Errorf("ada is told %q", got)
	}
	if got := said("ada", "questions", "--mine"); !strings.Contains(got, "nothing is asked") {
		t.Errorf("of ada's are %q", got)
	}
	if got := said("ada", "approve", q.Run); !strings.Contains(got, "the question is "+alone) {
		t.Errorf("ada is told %q", got)
	}
	if got := said("lea", "questions", "--mine"); !strings.Contains(got, alone) || !strings.Contains(got, "aod answer "+q.ID+" approve") {
		t.Errorf("lea is told %q", got)
	}
	if got := said("lea", "approve", q.Run); !strings.Contains(got, "goes on with approve") {
		t.Errorf("lea is told %q", got)
	}
}

// What somebody else has to answer isn't asked of a client of MCP, whose call waits for them; one of A2A is told, and
// refused.
func TestAClientThatIsNoApproverIsRefused(t *testing.T) {
	w := approving(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		var asked atomic.Int32
		client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked.Add(1)
			return &sdk.ElicitResult{Action: "accept"}, nil
		}})
		transport := &sdk.StreamableClientTransport{Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(w.keys["ada"])}, DisableStandaloneSSE: true, MaxRetries: -1}
		session, err := client.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		w.must(err)
		done := make(chan error, 1)
		go func() {
			result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "release", Arguments: map[string]any{}})
			if err == nil && result.IsError {
				err = errors.New(fmt.Sprint(result.Content))
			}
			done <- err
		}()
		var open []api.Question
		testkit.Eventually(w, "it asks", func() bool {
			open = w.questionsOf("lea", "")
			return len(open) == 1
		})
		select {
		case err := <-done:
			t.Errorf("%s: the call didn't wait: %v", revision, err)
		default:
		}
		answer := `{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"` + open[0].Run + `","inputResponses":{"` + open[0].ID + `":{"action":"accept","content":{}}},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
		if _, told := w.asks("ada", http.MethodPost, "/mcp", answer, "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tasks/update"); !strings.Contains(told, "team:legal, token:cfo") {
			t.Errorf("an answer by MCP: %s", told)
		}
		message := `{"message":{"messageId":"m1","taskId":"` + open[0].Run + `","role":"ROLE_USER","parts":[{"text":"approve"}]}}`
		if status, told := w.asks("ada", http.MethodPost, "/a2a/release/message:send", message); status != 403 || !strings.Contains(told, "team:legal, token:cfo") {
			t.Errorf("an answer by A2A: %d %s", status, told)
		}
		if rows := w.audited("server", "&object="+open[0].ID); len(rows) != 1 || rows[0] != "token:ada answer question "+open[0].ID+" 403 2" && rows[0] != "token:ada answer question "+open[0].ID+" 403 1" {
			t.Errorf("the audit has %q", rows)
		}
		if status, told := w.asks("lea", http.MethodPost, "/v1/questions/"+open[0].ID, `{"action": "approve"}`); status != 204 {
			t.Errorf("%d %s", status, told)
		}
		if err := <-done; err != nil || asked.Load() > 0 {
			t.Errorf("%s: %v, and the client was asked %d times", revision, err, asked.Load())
		}
		w.must(session.Close())
	}
}
