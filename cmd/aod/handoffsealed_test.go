package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

// spyScript looks for whatever a sealed capsule shouldn't find. With "host" it is the other
// run: it has a callee that lives as long as itself.
const spyScript = `trap 'exit 143' TERM
if (( $(number idle) )); then
	sleep 600 & wait $!
fi
if (( $(number host) )); then
	persist POST '/handoff?wait=false' own '{"target":"spy","args":{"idle":1}}'
	echo calling
	sleep 600 & wait $!
fi
cd /io/output
names() { ls /sys/class/net; }
sockets() { find / -path /proc -prune -o \( -type s -o -name '*.sock' \) -print 2> /dev/null | sort; }
# A refusal would be an answer: what there is none to is unreachable.
reach() { timeout 60 bash -c "exec 3<> /dev/tcp/$1" 2>&1 | grep -om1 'Network is unreachable$' || echo 'something is there'; }
api() { persist "$1" "$2" '' "$3"; echo "$status $answer"; }
names > names
reach 172.17.0.1/22 > bridge
reach 1.1.1.1/53 > world
reach 169.254.169.254/80 > metadata
[[ $(< /io/input.json) =~ \"other\":\"([0-9a-f-]+)\" ]] && other=${BASH_REMATCH[1]}
api GET "/handoff/$other" > read
api DELETE "/handoff/$other" > cancel
api POST /handoff '{"target":"stranger","args":{}}' > stranger
api GET /capsules/stranger/schema > schema
api GET /run > self
sockets > sockets # now that one has answered
grep -c "$other" /proc/self/mountinfo > mounts
echo '{}' > /io/output.json
`

const spySchema = `{
  "input": {"type": "object", "properties": {
    "host": {"type": "int"}, "idle": {"type": "int"}, "other": {"type": "string"}
  }, "additionalProperties": false},
  "output": {"type": "object"}
}
`

func TestACapsuleReachesNobodyElse(t *testing.T) {
	t.Parallel()
	t.Run("with an engine here", func(t *testing.T) {
		t.Parallel()
		spyFromInside(t, newServer(t, "--concurrency", "4"), "/run/aod/aod.sock\n")
	})
	t.Run("with an engine elsewhere", func(t *testing.T) {
		t.Parallel()
		spyFromInside(t, newRemoteServer(t, "--concurrency", "4"), "/run/aod/aod.sock\n/run/aod/reach/aod.sock\n")
	})
}

// spyFromInside proves that a run finds its own sockets and nobody else's.
func spyFromInside(t *testing.T, s *server, sockets string) {
	t.Helper()
	s.addCaller("spy", spyScript)
	write(t, spySchema, s.units, "spy", "schema.json")
	s.addWorker("stranger", "") // which is there, but not for the spy
	s.start()
	host := s.call("spy", `{"host":1}`)
	s.awaitLine(host, "calling")
	callee := s.callees(host)
	if len(callee) != 1 {
		t.Fatalf("the other run has the callees %+v", callee)
	}
	s.until(callee[0].ID, "runs", running)
	found := s.spyOn(callee[0].ID)

	for name, want := range map[string]string{
		"names": "lo\n", "sockets": sockets, "mounts": "0\n",
		"bridge": "Network is unreachable\n", "world": "Network is unreachable\n", "metadata": "Network is unreachable\n",
	} {
		if diff := cmp.Diff(want, found[name]); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for name, parts := range map[string][]string{
		"read":     {"404 ", `"code":"not_found"`},
		"cancel":   {"404 ", `"code":"not_found"`},
		"stranger": {"403 ", `"rule":"grant"`, `add {name: …, capsule: stranger} to tools.yaml`},
		"schema":   {"403 ", `"rule":"grant"`},
		"self":     {"200 ", `"parent":null`, `"run":"` + found["run"] + `"`},
	} {
		contains(t, found[name], parts...)
	}
	s.until(callee[0].ID, "runs on, though somebody else tried to cancel it", running)
	if _, err := s.client.Runs.Cancel(t.Context(), host, ""); err != nil {
		t.Error(err)
	}
}

// spyOn returns what a run finds out while that handoff of another run goes on, by the names
// of its files, and its id as "run".
func (s *server) spyOn(other string) map[string]string {
	s.t.Helper()
	record := s.await(s.call("spy", `{"other":"`+other+`"}`))
	found := map[string]string{"run": record.ID}
	for _, file := range record.Files {
		content, err := s.file(record, file.Name)
		if err != nil {
			s.t.Error(err)
		}
		found[file.Name] = string(content)
	}
	if record.Outcome != api.Success {
		s.t.Errorf("the spy is %s: %+v", record.Outcome, record.Error)
	}
	return found
}
