package agentapi

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/strictjson"
)

// startExample starts examples/remote-agent and returns its address.
func startExample(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	agent := exec.CommandContext(t.Context(), python, "../examples/remote-agent/agent.py", "--port", "0")
	agent.Stderr = os.Stderr
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Wait() }) // the end of the test's context kills it
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("it said %q, %v", line, err)
	}
	return address
}

func TestTheRemoteAgent(t *testing.T) {
	address := startExample(t)
	t.Run("keeps every rule", func(t *testing.T) {
		report, err := Check(t.Context(), Target{URL: address, TaskType: knownTask}, CheckOptions{})
		if err != nil || report.Failed() || report.Count(Pass) < len(checks())-1 {
			t.Errorf("%v\n%s", err, table(t, report))
		}
	})
	c := newClient(t, Options{URL: address, Timeout: time.Minute})
	text := strings.Repeat("one fish, two fish\n", 2500)
	request := Request{RequestID: "r-1", TaskType: knownTask, Mode: "LIVE"}
	request.Inputs, _ = strictjson.Encode(map[string]string{"text": text})
	const want = `"words": 10000, "different_words": 3, "lines": 2500, "characters": 47500, "top": [{"word": "fish", "count": 5000}`
	t.Run("answers", func(t *testing.T) {
		got, err := c.Run(t.Context(), request)
		if err != nil || !got.OK || !strings.Contains(string(got.Outputs), want) {
			t.Errorf("%s %v", got.Outputs, err)
		}
	})
	t.Run("streams", func(t *testing.T) {
		var types []string
		got, err := c.Stream(t.Context(), request, func(e Event) { types = append(types, string(e.Type)) })
		if err != nil || !got.OK || !strings.Contains(string(got.Outputs), want) || strings.Join(types, " ") != "started"+strings.Repeat(" progress", 3) {
			t.Errorf("%s %v %v", got.Outputs, types, err)
		}
	})
	t.Run("refuses a task without a text when it is meant", func(t *testing.T) {
		request := Request{RequestID: "r-2", TaskType: knownTask, Mode: "LIVE"}
		got, err := c.Run(t.Context(), request)
		if err == nil || got.RequestID != "r-2" || len(got.Warnings) != 1 {
			t.Errorf("%+v %v", got, err)
		}
	})
}
