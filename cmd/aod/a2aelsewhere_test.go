package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const a2aText = `{"input": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
 "output": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}`

// writeA2A writes a unit whose agent speaks A2A, with further lines below remote.
func writeA2A(t *testing.T, dir, url, more string) {
	t.Helper()
	write(t, "name: "+filepath.Base(dir)+"\nkind: remote\nremote:\n  protocol: a2a\n  url: "+url+"\n"+more, dir, "agent.yaml")
	write(t, a2aText, dir, "schema.json")
}

// a2aProgram builds the command line of the protocol's own SDK, in the version that this module has.
func a2aProgram(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a2a")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", file, "github.com/a2aproject/a2a-go/v2/cmd/a2a")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as our own program: most of it is compiled already
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// serveA2A starts an agent of the SDK's command line and returns its address.
func serveA2A(t *testing.T, program string, args ...string) string {
	t.Helper()
	address := programtest.FreeAddress(t)
	host, port, _ := strings.Cut(address, ":")
	agent := exec.Command(program, append([]string{"serve", "--host", host, "--port", port, "--quiet"}, args...)...)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait() // it was killed
	})
	testkit.Eventually(t, "the agent answers", func() bool {
		response, err := http.Get("http://" + address + "/.well-known/agent-card.json")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
	return "http://" + address
}

// The agents of the SDK's command line are units, for a command, a capsule and a schedule.
func TestAgentsOfTheA2ACommandLineAreUnits(t *testing.T) {
	onlyLong(t, "AOD_EXAMPLES")
	program := a2aProgram(t)
	agents := map[string]string{
		"echo":     serveA2A(t, program, "--echo"),
		"echo-rpc": serveA2A(t, program, "--echo", "--transport", "jsonrpc"),
		"old":      serveA2A(t, program, "--echo", "--protocol", "0.3"),
		"old-rpc":  serveA2A(t, program, "--echo", "--protocol", "0.3", "--transport", "jsonrpc"),
		"exec":     serveA2A(t, program, "--exec", "cat"),
		"chunks":   serveA2A(t, program, "--exec", "cat", "--chunk", "-", "--transport", "jsonrpc"),
	}
	s := newServer(t)
	s.addCaller("boss", `persist POST /handoff k "$(< /io/input.json)"
echo "{\"status\":$status,\"answer\":$answer}" > /io/output.json`)
	tools := ""
	for name, url := range agents {
		writeA2A(t, filepath.Join(s.units, name), url, "  stream: true\n")
		tools += "- {name: " + name + ", capsule: " + name + "}\n"
	}
	write(t, tools, s.units, "boss", "tools.yaml")
	s.start()
	for name, url := range agents {
		want := `{"text":"to-be"}`
		if name == "chunks" {
			want = `{"text":"tobe"}`
		}
		t.Run(name, func(t *testing.T) {
			alone(t)
			code, stdout, stderr := command(t, t.Context(), "run", filepath.Join(s.units, name), "--set", "message=to-be", "--json")
			if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), ""), want) {
				t.Errorf("by a command: code %d, %s%s", code, stdout, stderr)
			}
			id := s.call("boss", `{"target":"`+name+`","args":{"message":"to-be"}}`)
			if record := s.await(id); record.Outcome != api.Success || !strings.Contains(string(record.Output), want) {
				t.Errorf("by a capsule: %s %+v %s", record.Outcome, record.Error, record.Output)
			}
			s.putSoon(name, api.ScheduleSpec{Unit: name, Input: []byte(`{"message":"to-be"}`)}, time.Second)
			var run string
			testkit.Eventually(t, "the schedule has its run", func() bool {
				for occurrence, err := range s.client.Schedules.Occurrences(context.Background(), name) {
					if err == nil && occurrence.Run != "" {
						run = occurrence.Run
					}
				}
				return run != ""
			})
			if record := s.await(run); record.Outcome != api.Success || string(record.Output) != want {
				t.Errorf("by a schedule: %s %+v %s", record.Outcome, record.Error, record.Output)
			}
			_, stdout, _ = command(t, t.Context(), "check-agent", "--a2a", url)
			contains(t, inOneLine(stdout), "pass send ", "pass send-completed ", "pass error-unknown-task ")
		})
	}
}

// A server that is killed while an agent of A2A is at work goes on with its task: the agent is asked once, and a
// question of its is answered once.
func TestAKillDuringATaskOfA2A(t *testing.T) {
	t.Parallel()
	const canary = "canary-word"
	for _, form := range []peertest.Form{peertest.Forms[0], peertest.Forms[3]} {
		t.Run(form.Name(), func(t *testing.T) {
			t.Parallel()
			far := peertest.New(t, form, true)
			s := newInside(t, "--log-level", "debug")
			writeA2A(t, filepath.Join(s.units, "far"), far.URL, "")
			writeA2A(t, filepath.Join(s.units, "streaming"), far.URL, "  stream: true\n")
			s.start()
			submit := func(unit, text string) string {
				record, err := s.client.Runs.Submit(t.Context(), client.Submission{Unit: unit, Input: []byte(`{"message":"` + text + " " + canary + `"}`)})
				if err != nil {
					t.Fatal(err)
				}
				return record.ID
			}
			waiting, streaming, asking := submit("far", "wait"), submit("streaming", "wait"), submit("far", "ask")
			s.question(asking)
			testkit.Eventually(t, "the tasks are looked at", func() bool {
				_, paths := far.Headers()
				return len(paths) > 6
			})
			for event, err := range s.client.Runs.Events(t.Context(), streaming, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if event.Type == api.EventProgress {
					break
				}
			}
			s.kill()
			s.start()
			close(far.Release)
			for _, id := range []string{waiting, streaming} {
				if record := s.await(id); record.Outcome != api.Success || record.Retries > 0 {
					t.Errorf("%s, error %+v", record.Outcome, record.Error)
				}
			}
			s.aod("answer", asking, "answer", "--set", "answer="+canary)
			if record := s.await(asking); record.Outcome != api.Success || string(record.Output) != `{"text":"answered `+canary+`"}` {
				t.Errorf("%s, error %+v, %s", record.Outcome, record.Error, record.Output)
			}
			ids := map[string]int{}
			for _, m := range far.Messages() {
				ids[m.ID]++
			}
			if len(ids) != 4 || ids[waiting] != 1 || ids[streaming] != 1 || ids[asking] != 1 || ids[asking+"-1"] != 1 {
				t.Errorf("it was sent %v", ids)
			}
			if strings.Contains(s.log(), canary) || strings.Contains(s.log(), "at it") {
				t.Error("the log has words of a message or of the agent")
			}
		})
	}
}

func TestCheckAgentOfA2A(t *testing.T) {
	alone(t)
	good := peertest.New(t, peertest.Forms[0], true)
	close(good.Release)
	t.Run("a good agent ends in 0", func(t *testing.T) {
		code, stdout, stderr := command(t, t.Context(), "check-agent", "--a2a", good.URL)
		if code != 0 || stderr != "" || strings.Contains(stdout, "FAIL") {
			t.Errorf("code %d, %s%s", code, stdout, stderr)
		}
	})
	t.Run("what is sent", func(t *testing.T) {
		if err := os.WriteFile("inputs.json", []byte(`{"message":"fail"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, _ := command(t, t.Context(), "check-agent", "--a2a", good.URL, "--inputs", "inputs.json")
		if code != 1 || strings.Contains(stdout, "broke down") {
			t.Errorf("code %d, %s", code, stdout)
		}
		contains(t, inOneLine(stdout), "FAIL send-completed ", "it is failed: give it inputs")
	})
	t.Run("no agent", func(t *testing.T) {
		code, stdout, _ := command(t, t.Context(), "check-agent", "--a2a", "http://"+programtest.FreeAddress(t))
		if code != 1 {
			t.Errorf("code %d", code)
		}
		contains(t, inOneLine(stdout), "FAIL card ", "the agent does not answer")
	})
	for wrong, says := range map[string]string{
		good.URL + "=TASK": "has no task type",
		"":                 "the address of at least one agent",
	} {
		code, _, stderr := command(t, t.Context(), append([]string{"check-agent", "--a2a"}, strings.Fields(wrong)...)...)
		if code != 2 {
			t.Errorf("%s: code %d", wrong, code)
		}
		contains(t, stderr, says)
	}
}

func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
