package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const (
	mcpHello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	mcpReady = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func toolCall(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// addMCP adds a unit whose server is that of testdata/mcpserver.
func addMCP(t *testing.T, dir, name, more string) string {
	t.Helper()
	program, err := os.ReadFile("testdata/mcpserver/server.py")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		images, _ := exec.Command("docker", "images", "--quiet", "aod-capsule/"+name).Output()
		for _, id := range strings.Fields(string(images)) {
			_ = exec.Command("docker", "rmi", "--force", id).Run() // another test may have the same layers
		}
	})
	unit := filepath.Join(dir, name)
	write(t, string(program), unit, "server.py")
	write(t, "name: "+name+"\nkind: mcp\n"+more, unit, "agent.yaml")
	write(t, "FROM aod/base\nCOPY server.py /server.py\nENTRYPOINT [\"python3\", \"-u\", \"/server.py\"]\nCMD []\n", unit, "Dockerfile")
	return unit
}

// sessionContainers counts the containers of a unit.
func sessionContainers(t *testing.T, engine runtime.Containers, unit string) int {
	t.Helper()
	found, err := engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelUnit: unit})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// uniqueUnit is a name that no other test has, nor another copy of this one.
func uniqueUnit() string { return fmt.Sprintf("mcp-%d-%d", os.Getpid(), uniqueNumber()) }

var uniqueNumber = func() func() int {
	var mu sync.Mutex
	n := 0
	return func() int { mu.Lock(); defer mu.Unlock(); n++; return n }
}()

// mcpClient is a client of `aod mcp run`.
type mcpClient struct {
	t       *testing.T
	process *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	out     io.ReadCloser // its pipe
	stderr  *bytes.Buffer
}

func startMCP(t *testing.T, unit string) *mcpClient {
	t.Helper()
	c := &mcpClient{t: t, process: exec.Command("aod", "mcp", "run", unit), stderr: &bytes.Buffer{}}
	c.process.Env = append(os.Environ(), "AOD_DATA="+t.TempDir())
	c.process.Stderr = c.stderr
	var err error
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.out, err = c.process.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewReader(c.out)
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.process.Process.Kill(); _ = c.process.Wait() })
	c.says(mcpHello)
	if got := c.hears(); !strings.Contains(got, `"protocolVersion": "2025-11-25"`) {
		t.Fatalf("it began with %s", got)
	}
	c.says(mcpReady)
	return c
}

func (c *mcpClient) says(message string) {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, message+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *mcpClient) hears() string {
	c.t.Helper()
	line, err := c.stdout.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v; stderr:\n%s", err, c.stderr)
	}
	return line
}

// text is the text of a result.
func text(t *testing.T, message string) string {
	t.Helper()
	var m struct {
		Result struct{ Content []struct{ Text string } }
		Error  struct{ Message string }
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		t.Fatalf("%v in %.300s", err, message)
	}
	if len(m.Result.Content) == 0 {
		return m.Error.Message
	}
	return m.Result.Content[0].Text
}

func TestASealedServerOnStdio(t *testing.T) {
	t.Parallel()
	engine := dockertest.Require(t)
	name := uniqueUnit()
	unit := addMCP(t, t.TempDir(), name, "mcp: {tools: [count, env, sealed, noise, twice, strange, ask], timeout: 30s, env: {MODE: quiet}}\n")
	c := startMCP(t, unit)
	for i, step := range []struct{ tool, arguments, want string }{
		{"count", `{}`, "1"},
		{"count", `{}`, "2"},
		{"env", `{"name":"MODE"}`, "quiet"},
		{"sealed", `{}`, "True lo"},
		{"noise", `{}`, "after the noise"},
		{"twice", `{}`, "once"},
		{"strange", `{}`, "mine"},
		{"echo", `{}`, `there is no tool "echo"`},
	} {
		c.says(toolCall(i+1, step.tool, step.arguments))
		if got := text(t, c.hears()); got != step.want {
			t.Errorf("%s: %q, want %q", step.tool, got, step.want)
		}
	}
	c.says(toolCall(20, "ask", `{}`))
	if got := c.hears(); !strings.Contains(got, "sampling/createMessage") {
		t.Errorf("asked back: %s", got)
	}
	if got := c.hears(); !strings.Contains(got, "told") {
		t.Errorf("told: %s", got)
	}
	c.says(`{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant"}}`)
	if got := text(t, c.hears()); got != `{"role": "assistant"}` {
		t.Errorf("the answer of the client: %s", got)
	}
	c.says(`{"jsonrpc":"2.0","id":30,"method":"tools/list"}`)
	if got := c.hears(); strings.Contains(got, "echo") || !strings.Contains(got, `"count"`) {
		t.Errorf("listed: %s", got)
	}
	_ = c.stdin.Close()
	if err := c.process.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, c.stderr)
	}
	testkit.Eventually(t, "its container is gone", func() bool { return sessionContainers(t, engine, name) == 0 })
}

// What a server says that ends its session is in relay: here its container has to go.
func TestHowSealedServersEnd(t *testing.T) {
	t.Parallel()
	engine := dockertest.Require(t)
	for what, c := range map[string]struct {
		tool  string           // that it calls; "" is none
		heard bool             // whether the call is answered
		ends  func(*mcpClient) // how it ends then
	}{
		"a killed client":                       {"", false, func(c *mcpClient) { _ = c.process.Process.Kill() }},
		"a killed command over a deaf server":   {"deaf", true, func(c *mcpClient) { _ = c.process.Process.Kill() }},
		"a client that leaves over a fork bomb": {"forks", true, func(c *mcpClient) { _ = c.stdin.Close() }}, // the call takes too long
		"a client that is gone while it waits":  {"hang", false, func(c *mcpClient) { _, _ = c.stdin.Close(), c.out.Close() }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := uniqueUnit()
			client := startMCP(t, addMCP(t, t.TempDir(), name, "mcp: {timeout: 2s}\nlimits: {pids: 32}\n"))
			if c.tool != "" {
				client.says(toolCall(1, c.tool, "{}"))
			}
			if c.heard {
				client.hears()
			}
			c.ends(client)
			testkit.Eventually(t, "its container is gone", func() bool { return sessionContainers(t, engine, name) == 0 })
		})
	}
}

// speaks has a client of the server's API say something to a unit; "" are the server's own tools.
func (s *server) speaks(method, unit, session, body string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequest(method, strings.TrimSuffix(s.url()+"/mcp/"+unit, "/"), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session,
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(raw)
}

// session begins a session.
func (s *server) session(unit string) string {
	s.t.Helper()
	response, body := s.speaks("POST", unit, "", mcpHello)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s", response.Status, body)
	}
	return response.Header.Get("Mcp-Session-Id")
}

func (s *server) sessionRuns(unit string) []api.Summary {
	s.t.Helper()
	var runs []api.Summary
	for run, err := range s.client.Runs.List(context.Background(), api.Filter{Unit: unit}) {
		if err != nil {
			s.t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}

func TestSessionsWithAServersUnits(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "1")
	name := uniqueUnit()
	addMCP(t, s.units, name, "")
	s.addWorker("plain", "0")
	s.start()
	const n = 5 // of one slot
	ids := make([]string, n)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i] = s.session(name) })
	}
	all.Wait()
	for range 2 {
		for _, id := range ids {
			s.speaks("POST", name, id, toolCall(1, "count", `{"secret":"canary-4711"}`))
		}
	}
	for _, id := range ids {
		if _, body := s.speaks("POST", name, id, toolCall(2, "count", "{}")); text(t, body) != "3" {
			t.Errorf("state isn't a session's: %s", body)
		}
	}
	if got := sessionContainers(t, s.engine, name); got != n {
		t.Errorf("%d containers of %d sessions", got, n)
	}
	for _, id := range ids[:n-1] {
		if response, _ := s.speaks("DELETE", name, id, ""); response.StatusCode != http.StatusNoContent {
			t.Error(response.Status)
		}
	}
	testkit.Eventually(t, "their containers are gone", func() bool { return sessionContainers(t, s.engine, name) == 1 })
	var ended []api.Summary
	testkit.Eventually(t, "their runs are over", func() bool {
		ended = slices.DeleteFunc(s.sessionRuns(name), func(run api.Summary) bool { return run.Outcome == "" })
		return len(ended) == n-1
	})
	for _, run := range ended {
		record := s.await(run.ID)
		if record.Outcome != api.Success || len(record.ToolCalls) != 3 || string(record.Output) != `{"calls":3,"failed":0}` {
			t.Errorf("%+v %+v %s", record.Outcome, record.ToolCalls, record.Output)
		}
		if raw, _ := json.Marshal(record); bytes.Contains(raw, []byte("canary")) {
			t.Error("the record has arguments")
		}
	}
	if strings.Contains(s.log(), "canary") || strings.Contains(s.metrics(), "canary") {
		t.Error("the log or the metrics have arguments")
	}
	if response, body := s.speaks("POST", "plain", "", mcpHello); response.StatusCode != http.StatusConflict || !strings.Contains(body, "an MCP server") {
		t.Errorf("%s %s", response.Status, body)
	}
	if response, body := s.speaks("POST", "none", "", mcpHello); response.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s", response.Status, body)
	}
	s.kill()
	testkit.Eventually(t, "the last container is gone with the server", func() bool { return sessionContainers(t, s.engine, name) == 0 })
	s.start()
	for _, run := range s.sessionRuns(name) {
		record := s.await(run.ID)
		if record.Outcome == api.SystemError && record.Error.Kind == "cut_off" {
			return
		}
	}
	t.Error("no session was cut off")
}

func TestACapsuleTalksWithAServerThatItIsGranted(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "1")
	name, other := uniqueUnit(), uniqueUnit()
	addMCP(t, s.units, name, "")
	addMCP(t, s.units, other, "")
	s.addWorker("plain", "0")
	s.addPython("caller", "budgets: {calls: 4}\n", "- {name: a, capsule: "+name+", tool: count}\n- {name: b, capsule: "+name+", tool: sealed}\n- {name: c, capsule: plain}\n")
	s.start()
	id := s.call("caller", fmt.Sprintf(`{"steps": [
		{"unit": %q}, {"tool": "count"}, {"tool": "count"}, {"tool": "echo"}, {"tool": "sealed"},
		{"unit": %q}, {"tool": "count"}, {"tool": "count"},
		{"unit": %q}, {"unit": "plain"}]}`, name, name, other))
	record := s.await(id)
	if record.Outcome != api.Success {
		t.Fatalf("%+v", record.Error)
	}
	var got struct {
		Said  []map[string]any
		Kinds map[string]string
	}
	if err := json.Unmarshal(record.Output, &got); err != nil {
		t.Fatal(err)
	}
	spent := "the 4 calls that \"caller\" may make, with all that it calls, are spent (raise budgets.calls in the agent.yaml of \"caller\", or call less)"
	want := []map[string]any{
		{"status": 200.0, "code": "", "rule": ""},
		{"text": "1"},
		{"text": "2"},
		{"error": `there is no tool "echo"`},
		{"text": "True lo"},
		{"status": 200.0, "code": "", "rule": ""},
		{"text": "1"},
		{"text": spent},
		{"status": 403.0, "code": "forbidden", "rule": "grant"},
		{"status": 409.0, "code": "conflict", "rule": ""},
	}
	if diff := cmp.Diff(want, got.Said); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{name: "mcp", "plain": ""}, got.Kinds); diff != "" {
		t.Error(diff)
	}
	testkit.Eventually(t, "its servers are gone", func() bool { return sessionContainers(t, s.engine, name) == 0 })
	for _, run := range s.sessionRuns(name) {
		if record := s.await(run.ID); record.Parent != id || len(record.ToolCalls) == 0 {
			t.Errorf("%s %+v %+v", record.Parent, record.ToolCalls, record.Error)
		}
	}
}
