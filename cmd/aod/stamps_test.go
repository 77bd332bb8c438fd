package main

import (
	"fmt"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// stampScript adds a line to the file that it is given, if any, and works a while.
const stampScript = `echo started
input=$(cat /io/input.json)
mkdir -p /io/output
if [[ $input =~ \"doc\":\"([^\"]+)\" ]]; then cat "/io/input/${BASH_REMATCH[1]}" > /io/output/doc.txt; fi
printf x >> /io/output/doc.txt
sleep 0.3
echo '{"doc":"doc.txt"}' > /io/output.json
`

const stampSchema = `{
  "input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}, "n": {"type": "integer"}}},
  "output": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}, "required": ["doc"]}
}`

// stampFlow has a chain, a loop, a map, branches and a question.
const stampFlow = `
start: first
nodes:
  first: {run: stamp, set: {doc: "${{ out.doc }}", rounds: 0}, next: again}
  again:
    run: stamp
    max_visits: 5
    with: {doc: "${{ state.doc }}"}
    set: {doc: "${{ out.doc }}", rounds: "${{ state.rounds + 1 }}"}
    action: '${{ state.rounds < 2 ? "again" : "on" }}'
    next: {again: again, on: each, exhausted: end}
  each: {map: "${{ 1..6 }}", parallel: 2, run: stamp, with: {n: "${{ item }}", doc: "${{ state.doc }}"}, collect: "${{ out.doc }}", set: {docs: "${{ out }}"}, next: both}
  both:
    branches:
      left: {run: stamp, with: {doc: "${{ state.docs[0] }}"}}
      right: {run: stamp, with: {doc: "${{ state.docs[5] }}"}}
    set: {left: "${{ out.left.doc }}", right: "${{ out.right.doc }}"}
    next: ask
  ask: {ask: "Enough?", next: {approve: end, reject: end}}
output: {left: "${{ state.left }}", right: "${{ state.right }}", rounds: "${{ state.rounds }}"}
`

// addStamps adds the capsule "stamp" and the flow "stamps" that runs it.
func (s *server) addStamps() {
	s.t.Helper()
	for path, content := range map[string]string{
		"stamp/Dockerfile": "FROM " + dockertest.Image + "\nCOPY run.sh /run.sh\nCMD [\"bash\", \"/run.sh\"]\n",
		"stamp/run.sh":     stampScript, "stamp/agent.yaml": "name: stamp\n", "stamp/tools.yaml": "[]\n", "stamp/schema.json": stampSchema,
		"stamps/agent.yaml": "name: stamps\nkind: flow\nconcurrency: 1\n", "stamps/flow.yaml": stampFlow,
		"stamps/schema.json": `{"input": {"type": "object"}, "output": {"type": "object", "properties": {
			"left": {"type": "string", "format": "file_path"}, "right": {"type": "string", "format": "file_path"}, "rounds": {"type": "integer"}
		}, "required": ["left", "right", "rounds"]}}`,
	} {
		write(s.t, content, s.units, filepath.FromSlash(path))
	}
}

const stampCalls = 1 + 3 + 6 + 2

// judgeStamps holds that each node was kept once, and each program started once.
func (s *server) judgeStamps(record api.Record) {
	t := s.t
	t.Helper()
	if record.Outcome != api.Success {
		t.Fatalf("it came to %s: %+v", record.Outcome, record.Error)
	}
	for _, name := range []string{"left", "right"} {
		for _, file := range record.Files {
			if file.Pointer == nil || *file.Pointer != "/"+name {
				continue
			}
			if content, err := s.file(record, file.Name); err != nil || string(content) != "xxxxxx" {
				t.Errorf("%s is %q, %v", name, content, err)
			}
		}
	}
	if len(record.Files) != 1 && len(record.Files) != 2 {
		t.Errorf("files %+v", record.Files)
	}
	seen := map[string]bool{}
	for step, err := range s.client.Flows.Steps(t.Context(), record.ID) {
		name := fmt.Sprintf("%s~%d", step.Address, step.Try)
		if err != nil || seen[name] || step.State != api.DoneStep {
			t.Errorf("step %+v, %v", step, err)
		}
		seen[name] = true
	}
	calls := s.callees(record.ID)
	if len(calls) != stampCalls {
		t.Errorf("%d calls", len(calls))
	}
	for _, call := range calls {
		if starts, err := s.startsOf(call.ID); err != nil || starts != 1 || call.Outcome != api.Success {
			t.Errorf("call %s is %s, started %d times: %v", call.ID, call.Outcome, starts, err)
		}
	}
}
