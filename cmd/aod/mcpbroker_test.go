package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
)

// anyRuns has every unit, and ends each run at once.
type anyRuns struct{ started int }

func (r *anyRuns) Unit(_ context.Context, name string) (*handoff.Unit, error) {
	const schema = `{"input": {"type": "object"}, "output": {"type": "object"}}`
	c, found := contract.Parse([]byte(schema))
	if c == nil {
		return nil, errors.New(fmt.Sprint(found))
	}
	u := &handoff.Unit{Name: name, Description: "It is " + name + ".", Contract: c, Schema: []byte(schema)}
	if name == "server" {
		u.Kind = capsule.KindMCP
	}
	return u, nil
}

func (r *anyRuns) Start(context.Context, handoff.Call) (string, error) {
	r.started++
	return "00000000-0000-7000-8000-000000000001", nil
}

func (r *anyRuns) Await(_ context.Context, id string) (handoff.Result, error) {
	return handoff.Result{ID: id, Ended: true, State: "completed", Success: true, Output: json.RawMessage(`{}`)}, nil
}

func (r *anyRuns) Cancel(context.Context, string, string) error { return nil }

func (r *anyRuns) LastWords(context.Context, string) string { return "" }

func (r *anyRuns) Messages(context.Context, int64) ([]api.HeardMessage, error) { return nil, nil }

func (r *anyRuns) Artifact(context.Context, handoff.Artifact) error { return nil }

func (r *anyRuns) Progress(handoff.Progress) {}

func (r *anyRuns) Ask(context.Context, handoff.Question) (handoff.Answer, error) {
	return handoff.Answer{Denied: "nobody is there"}, nil
}

func (r *anyRuns) Told(context.Context, string) iter.Seq[handoff.Progress] {
	return func(func(handoff.Progress) bool) {}
}

// askBroker makes one request at the /mcp of a caller.
func askBroker(t *testing.T, runs handoff.Runs, caller handoff.Caller, limits handoff.Limits, method, name, params string) json.RawMessage {
	t.Helper()
	handler := mcpMount(slog.New(slog.DiscardHandler)).New(handoff.NewBroker(caller, runs, limits, nil))
	defer handler.(io.Closer).Close()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		method, params, mcp.Stateless)
	r := httptest.NewRequestWithContext(t.Context(), "POST", mcp.Path, strings.NewReader(body))
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": mcp.Stateless, "Mcp-Method": method, "Mcp-Name": name,
	} {
		if value != "" {
			r.Header.Set(header, value)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Body.Bytes()
}

func TestToolsOfACapsuleAreHandoffsWithTheirRules(t *testing.T) {
	granted := handoff.Caller{
		Run: "r", Unit: "caller", Path: []handoff.Step{{Run: "r", Unit: "caller"}}, Grants: []string{"callee", "caller"},
		Tools: []capsule.Tool{{Name: "ask", Capsule: "callee"}, {Name: "again", Capsule: "caller"}},
	}
	for _, c := range []struct {
		rule, tool string
		change     func(*handoff.Caller, *handoff.Limits)
	}{
		{rule: "", tool: "ask"},
		{rule: "cycle", tool: "again"},
		{rule: "depth", tool: "ask", change: func(c *handoff.Caller, _ *handoff.Limits) {
			c.Path = []handoff.Step{{Run: "a", Unit: "a", Budgets: capsule.Budgets{Depth: 1}}, {Run: "r", Unit: "caller"}}
		}},
		{rule: "depth", tool: "ask", change: func(c *handoff.Caller, l *handoff.Limits) {
			c.Path, l.Depth = []handoff.Step{{Run: "a", Unit: "a"}, {Run: "r", Unit: "caller"}}, 1
		}},
		{rule: "deadline", tool: "ask", change: func(c *handoff.Caller, _ *handoff.Limits) { c.Deadline = time.Unix(1, 0) }},
		{rule: "calls", tool: "ask", change: func(c *handoff.Caller, _ *handoff.Limits) {
			c.Path[0].Budgets.Calls, c.Tree = 1, handoff.NewTree()
			c.Tree.Restore(handoff.BudgetCalls, "r", 1)
		}},
		{rule: "size", tool: "ask", change: func(_ *handoff.Caller, l *handoff.Limits) { l.ArgsBytes = 1 }},
	} {
		t.Run("rule "+c.rule, func(t *testing.T) {
			caller, limits, runs := granted, handoff.Limits{}, &anyRuns{}
			caller.Path = slices.Clone(caller.Path)
			if c.change != nil {
				c.change(&caller, &limits)
			}
			answer := askBroker(t, runs, caller, limits, "tools/call", c.tool, fmt.Sprintf(`"name":%q,"arguments":{},`, c.tool))
			result, err := answerOf(answer)
			if err != nil {
				t.Fatalf("%v in %s", err, answer)
			}
			var got struct {
				IsError bool
				Content []struct{ Text string }
			}
			if err := json.Unmarshal(result, &got); err != nil {
				t.Fatal(err)
			}
			refused := c.rule != ""
			if got.IsError != refused || refused && !strings.Contains(got.Content[0].Text, fmt.Sprintf(`"rule":%q`, c.rule)) || (runs.started == 0) != refused {
				t.Errorf("%d runs, %s", runs.started, result)
			}
		})
	}
}

func TestAToolThatIsNotGrantedIsNotThere(t *testing.T) {
	caller := handoff.Caller{Run: "r", Unit: "caller", Grants: []string{"callee"}, Tools: []capsule.Tool{{Name: "ask", Capsule: "callee"}}}
	for _, tool := range []string{"other", "callee"} { // the second one is there under another name
		runs := &anyRuns{}
		if _, err := answerOf(askBroker(t, runs, caller, handoff.Limits{}, "tools/call", tool, fmt.Sprintf(`"name":%q,`, tool))); err == nil || runs.started > 0 {
			t.Errorf("%s: %v, %d runs", tool, err, runs.started)
		}
	}
	caller.Grants = append(caller.Grants, "server") // which is talked with
	list, err := answerOf(askBroker(t, &anyRuns{}, caller, handoff.Limits{}, "tools/list", "", ""))
	if err != nil || strings.Count(string(list), `"inputSchema"`) != 1 || !strings.Contains(string(list), `"name":"ask"`) {
		t.Errorf("%s, %v", list, err)
	}
}

func (*anyRuns) Recall(context.Context, handoff.Call) (string, error) { return "", nil }
