package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// addFlow adds a flow that takes and gives any object.
func (s *server) addFlow(name, agent, graph string) {
	s.t.Helper()
	write(s.t, "name: "+name+"\nkind: flow\n"+agent, s.units, name, "agent.yaml")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, s.units, name, "schema.json")
	write(s.t, graph, s.units, name, "flow.yaml")
}

// TestFlowsMeetEveryOtherWayOfCalling has one slot in all: whoever waits for a call holds none.
func TestFlowsMeetEveryOtherWayOfCalling(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "1", "--units", elsewhere(t, "../../examples"))
	s.addFlow("counted", "", `
nodes:
  count: {run: word-stats, with: {text: "${{ input.text }}"}, set: {words: "${{ out.words }}"}}
output: {words: "${{ state.words }}"}
`)
	s.addCaller("asker", `persist POST /handoff k '{"target":"counted","args":{"text":"one two three"}}'; echo "$answer" > /io/output.json`)
	write(t, "- {name: counted, capsule: counted}\n", s.units, "asker", "tools.yaml")
	s.addWorker("worker", "")
	s.addFlow("inner", "concurrency: 1\n", `{nodes: {work: {run: worker, with: {mark: "${{ input.n }}"}, set: {mark: "${{ out.mark }}"}}}, output: {mark: "${{ state.mark }}"}}`)
	s.addFlow("middle", "concurrency: 1\n", `{nodes: {call: {run: inner, with: {n: "${{ input.n }}"}, set: {mark: "${{ out.mark }}"}}}, output: {mark: "${{ state.mark }}"}}`)
	s.addFlow("outer", "concurrency: 1\n", `{nodes: {call: {run: middle, with: {n: "${{ input.n }}"}, set: {mark: "${{ out.mark }}"}}}, output: {mark: "${{ state.mark }}"}}`)
	s.start()

	t.Run("a capsule calls a flow, which calls an agent elsewhere", func(t *testing.T) {
		record := s.await(s.call("asker", `{}`))
		var answer struct{ Output json.RawMessage }
		if err := json.Unmarshal(record.Output, &answer); err != nil || string(answer.Output) != `{"words":3}` {
			t.Errorf("it is %s and gave %s, %v", record.Outcome, record.Output, err)
		}
		flows := s.callees(record.ID)
		if len(flows) != 1 || flows[0].Unit != "counted" {
			t.Fatalf("it called %+v", flows)
		}
		if agents := s.callees(flows[0].ID); len(agents) != 1 || agents[0].Unit != "word-stats" || agents[0].Kind != "remote" {
			t.Errorf("the flow called %+v", agents)
		}
	})
	t.Run("the agent HTTP contract runs a flow", func(t *testing.T) {
		status, body := s.post("/agents/run/sync", `{"request_id":"r-1","task_type":"counted","inputs":{"text":"one two"}}`)
		if status != http.StatusOK || !strings.Contains(body, `"words":2`) {
			t.Errorf("%d %s", status, body)
		}
	})
	t.Run("two flows three deep, each of which goes on once at a time", func(t *testing.T) {
		ids := []string{s.call("outer", `{"n":2}`), s.call("outer", `{"n":3}`)}
		first, second := s.await(ids[0]), s.await(ids[1])
		if string(first.Output) != `{"mark":2}` || string(second.Output) != `{"mark":3}` {
			t.Fatalf("they gave %s and %s: %+v, %+v", first.Output, second.Output, first.Error, second.Error)
		}
		if second.StartedAt.Before(*first.FinishedAt) {
			t.Errorf("the second began at %v, and the first ended at %v", second.StartedAt, first.FinishedAt)
		}
	})
}

// post sends a JSON document and returns the answer.
func (s *server) post(path, body string) (status int, answer string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// sayingFlow runs two units before a question and the same two after it.
const sayingFlow = `
start: a
nodes:
  a: {run: one, set: {a: "${{ out.said }}"}, next: b}
  b: {run: two, set: {b: "${{ out.said }}"}, next: ask}
  ask: {ask: "Go on?", next: again}
  again: {run: one, set: {c: "${{ out.said }}"}, next: last}
  last: {run: two, set: {d: "${{ out.said }}"}}
output: {by: %s, said: "${{ [state.a, state.b, state.c, state.d] }}"}
`

// saying writes the flow "sayings" and its two units, all of one edition.
func (s *server) saying(edition string) {
	s.t.Helper()
	for _, name := range []string{"one", "two"} {
		write(s.t, "FROM "+dockertest.Image+"\nCOPY run.sh /run.sh\nCMD [\"bash\", \"/run.sh\"]\n", s.units, name, "Dockerfile")
		write(s.t, fmt.Sprintf("echo '{\"said\":%q}' > /io/output.json\n", edition+" "+name), s.units, name, "run.sh")
		write(s.t, "name: "+name+"\n", s.units, name, "agent.yaml")
		write(s.t, "[]\n", s.units, name, "tools.yaml")
		write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, s.units, name, "schema.json")
	}
	s.addFlow("sayings", "", fmt.Sprintf(sayingFlow, edition))
}

func TestARunOfAFlowEndsWithWhatItBeganWith(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.saying("old")
	s.start()
	begun := s.call("sayings", `{}`)
	question := s.question(begun)
	before := s.versions("sayings", "one", "two")
	s.saying("new")
	testkit.Eventually(t, "the edits are seen", func() bool {
		for name, version := range s.versions("sayings", "one", "two") {
			if version == before[name] {
				return false
			}
		}
		return true
	})
	next := s.call("sayings", `{}`)
	after := s.question(next)
	s.kill() // the next process goes on with both
	s.start()
	s.approve(after)
	s.approve(question)
	for run, want := range map[string]string{
		begun: `{"by":"old","said":["old one","old two","old one","old two"]}`,
		next:  `{"by":"new","said":["new one","new two","new one","new two"]}`,
	} {
		if record := s.await(run); string(record.Output) != want {
			t.Errorf("it is %s and gave %s, not %s: %+v", record.Outcome, record.Output, want, record.Error)
		}
	}
}

func (s *server) approve(q api.Question) {
	s.t.Helper()
	if err := s.client.Answer(s.t.Context(), q.ID, api.Answer{Action: "approve"}); err != nil {
		s.t.Fatal(err)
	}
}

// versions are the newest versions of units, by their names.
func (s *server) versions(names ...string) map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for _, name := range names {
		u, err := s.client.Unit(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		found[name] = u.Version
	}
	return found
}
