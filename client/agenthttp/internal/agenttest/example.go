package agenttest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StartExample starts examples/remote-agent and returns its address. The root is the repository's, from the
// directory of the test.
func StartExample(t *testing.T, root string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	program := filepath.Join(root, "examples/remote-agent/agent.py")
	agent := exec.CommandContext(t.Context(), python, program, "--port", "0")
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
