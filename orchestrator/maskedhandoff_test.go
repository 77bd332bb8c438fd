package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// callingScript hands its input to the agent "says", and returns what that answers.
const callingScript = `body="{\"target\":\"says\",\"args\":$(cat /io/input.json)}"
exec 3<> /dev/tcp/127.0.0.1/7070
printf 'POST /handoff HTTP/1.1\r\nHost: aod\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&3
whole=$(cat <&3)
printf %s "${whole#*$'\r\n\r\n'}" > /io/output.json
`

// A capsule isn't masked, and what it hands to an agent is in the agent's run. The program of that
// gets it as it is.
func TestAHandoffToAnAgentIsMasked(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	dir := filepath.Join(l.opts.Sources[0], "calls")
	write(t, filepath.Join(dir, "Dockerfile"), "FROM "+dockertest.Image+"\nCOPY call /call\nCMD [\"bash\", \"/call\"]\n")
	write(t, filepath.Join(dir, "call"), callingScript)
	write(t, filepath.Join(dir, "agent.yaml"), "name: calls\n")
	write(t, filepath.Join(dir, "tools.yaml"), "- {name: says, capsule: says}\n")
	write(t, filepath.Join(dir, "schema.json"), anyContract)
	if err := l.service.Close(); err != nil {
		t.Fatal(err)
	}
	l.start(dockertest.Require(t))
	const told = "key " + canaryMessage
	parent, _, err := l.service.Submit(trusted.Context(t), spool.Submission{Unit: "calls", Input: encoded(message(told))})
	if err != nil {
		t.Fatal(err)
	}
	parent = l.until(parent.ID, func(r api.Record) bool { return r.Outcome != "" })
	l.until(parent.ID, func(api.Record) bool { return l.service.jobs.count() == 0 })
	if parent.Outcome != api.Success || parent.InputMasked || string(parent.Input) != string(encoded(message(told))) || !strings.Contains(string(parent.Output), `"you said key ****6789"`) {
		t.Errorf("the caller: %s", show(parent))
	}
	page, err := l.service.Runs.List(trusted.Context(t), api.Filter{Parent: parent.ID})
	if err != nil || len(page.Runs) != 1 {
		t.Fatalf("%+v %v", page, err)
	}
	child := page.Runs[0].ID
	shown := l.shown(child)
	l.clean("what is shown of the agent's run", []byte(shown))
	sum := sha256.Sum256([]byte(told))
	for _, want := range []string{`{"message":"key ****6789"}`, `"input_masked":true`, "sum " + hex.EncodeToString(sum[:4]) + "\n", "said: key ****6789\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	if files := l.trueInputs(); len(files) > 0 {
		t.Errorf("the true input stays: %v", files)
	}
	if _, _, err := l.service.Rerun(trusted.Context(t), child, "", api.Rerun{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a rerun of it: %v", err)
	}
}
