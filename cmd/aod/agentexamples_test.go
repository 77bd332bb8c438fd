package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/client"
)

// agentExamples are those of examples/agents that do a task. Packages of Debian take minutes to
// be installed: they are looked at in the long form alone.
var agentExamples = []struct {
	name   string
	args   []string
	input  string
	debian bool
}{
	{"word-tool", []string{"-m", "The ferry is late. The FERRY!"}, `{"message":"The ferry is late. The FERRY!"}`, false},
	{"py-report", []string{"--set", "title=Days", "--set", "numbers=[1,2,6]"}, `{"title":"Days","numbers":[1,2,6]}`, false},
	{"debgpt", []string{"-m", "When?"}, `{"message":"When?"}`, true},
	{"debgpt-ask", []string{"-m", "When?"}, `{"message":"When?"}`, true},
	{"openai-cli", []string{"-m", "When?"}, `{"message":"When?"}`, true},
}

// What an agent gives by `aod agent run`, it gives by the server API, to a capsule that calls it
// and as a node of a flow. The long form is:
// AOD_DEBIAN=1 go test -run TestTheExamplesOfAgents ./cmd/aod
func TestTheExamplesOfAgentsGiveTheSameEverywhere(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_EXAMPLES")
	settings := "providers: {said: {kind: script, answers: answers.yaml}}\nmodels: {gpt-4o-mini: {use: [said/any]}}\n"
	models := filepath.Join(t.TempDir(), "aod.yaml")
	settings = strings.ReplaceAll(settings, "answers.yaml", filepath.Join(filepath.Dir(models), "answers.yaml"))
	write(t, settings, models)
	write(t, "{repeat: true, answers: [{text: In 1715.}]}\n", filepath.Dir(models), "answers.yaml")
	s, work := exampleServer(t, settings)
	var callees []string
	for _, e := range agentExamples {
		if e.debian && os.Getenv("AOD_DEBIAN") == "" {
			continue
		}
		callees = append(callees, e.name)
		if err := os.CopyFS(filepath.Join(s.units, e.name), os.DirFS(filepath.Join("../../examples/agents", e.name))); err != nil {
			t.Fatal(err)
		}
		s.addNode(e.name, e.input)
	}
	addHand(s, callees...)
	s.start()
	work()
	for _, e := range agentExamples {
		t.Run(e.name, func(t *testing.T) {
			dir := filepath.Join(s.units, e.name)
			if !slices.Contains(callees, e.name) {
				t.Skip("a package of Debian isn't part of the short form")
			}
			c, err := capsule.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			here := gave(t, append([]string{"agent", "run", dir, "--models", models}, e.args...))
			if here.Outcome != api.Success {
				t.Fatalf("by aod agent run %+v", here)
			}
			called, _ := s.hand(c, capsule.Case{Input: json.RawMessage(e.input)}, nil)
			for way, record := range map[string]api.Record{"by the server API": s.ran(e.name, e.input), "by handoff": called} {
				if output := runID.ReplaceAllString(string(record.Output), "ID"); record.Outcome != api.Success || output != here.Output {
					t.Errorf("by aod agent run %s, %s %s: %s %+v", here.Output, way, output, record.Outcome, record.Error)
				}
			}
			flow := s.ran(e.name+"-flow", "{}")
			if diff := cmp.Diff(fields(t, `{"gave":`+here.Output+"}"), fields(t, string(flow.Output))); diff != "" {
				t.Errorf("by aod agent run, and as a node of a flow, which came to %s %+v:\n%s", flow.Outcome, flow.Error, diff)
			}
		})
	}
}

func fields(t *testing.T, document string) (fields map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// addNode gives the server a flow NAME-flow whose one node is a unit.
func (s *server) addNode(name, input string) {
	s.t.Helper()
	dir := filepath.Join(s.units, name+"-flow")
	write(s.t, "name: "+name+"-flow\nkind: flow\n", dir, "agent.yaml")
	write(s.t, "start: it\nnodes:\n  it: {run: "+name+", with: "+input+", set: {gave: \"${{ out }}\"}, next: end}\noutput: {gave: \"${{ state.gave }}\"}\n", dir, "flow.yaml")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, dir, "schema.json")
}

// ran has a unit run to its end.
func (s *server) ran(unit, input string) api.Record {
	s.t.Helper()
	record, err := s.submit(s.t.Context(), client.Submission{Unit: unit, Input: []byte(input)})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.await(record.ID)
}
