package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// What the examples that ask models give by `aod run`, they give on a server, in a container
// that waited for them, and to a capsule that calls them. Meanwhile nobody gets out of a
// sandbox: listeners of this machine, at each of its addresses, see no connection.
func TestTheExamplesThatAskModelsGiveTheSameEverywhere(t *testing.T) {
	onlyLong(t, "AOD_EXAMPLES")
	examples, err := filepath.Abs("../../examples/capsules")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"triage", "model", "analyst", "openai-client", "messages-curl"} {
		t.Run(name, func(t *testing.T) {
			c, err := capsule.Load(filepath.Join(examples, name))
			if err != nil {
				t.Fatal(err)
			}
			sameEverywhere(t, c, examples)
		})
	}
}

func sameEverywhere(t *testing.T, c *capsule.Capsule, examples string) {
	test := answered(t, c)
	models := filepath.Join(t.TempDir(), "models.yaml")
	write(t, string(test.Models), filepath.Dir(models), "answers.yaml")
	settings := `
providers:
  said: {kind: script, answers: answers.yaml}
models:
  gpt-4o-mini: {use: [said/any], price: {input: 1, output: 1}}
  text-embedding-3-small: {use: [said/any], price: {input: 1, output: 1}}
  gpt-4o: {use: [said/any], price: {input: 1, output: 1}}
  claude-sonnet-4-5: {use: [said/any], price: {input: 1, output: 1}}
`
	write(t, settings, models)
	here := gave(t, append([]string{"run", c.Dir, "--models", models}, caseArgs(test)...))

	ways, connected := listenEverywhere(t)
	s := newServer(t, "--units", examples, "--pool", "4", "--config", filepath.Join(filepath.Dir(models), "aod.yaml"))
	write(t, settings+"unit: {"+c.Name+": {warm: 1}}\n", filepath.Dir(models), "aod.yaml")
	addHand(s, c.Name)
	s.start()
	s.waitsFor(c.Name)
	t.Setenv("AOD_TOKEN", s.token)
	there := gave(t, append([]string{"run", c.Name, "--server", s.url()}, caseArgs(test)...))
	if there.Outcome != api.Success || there.Output != here.Output {
		t.Errorf("by aod run %+v, on a server %+v", here, there)
	}
	testkit.Eventually(t, "a call gets a container that waited", func() bool {
		s.waitsFor(c.Name) // another one may take its place meanwhile
		called, reached := s.hand(c, test, ways)
		if output := runID.ReplaceAllString(string(called.Output), "ID"); output != here.Output {
			t.Fatalf("by aod run %s, by handoff %s", here.Output, output)
		}
		if len(reached) > 0 || connected.Load() > 0 {
			t.Fatalf("the caller reached %s; there were %d connections", reached, connected.Load())
		}
		return called.Container.WaitedMS > 0
	})
}

// answered returns the first case that succeeds and says what models answer.
func answered(t *testing.T, c *capsule.Capsule) capsule.Case {
	t.Helper()
	cases, err := c.Cases()
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]string{"analyst": "ferry"}[c.Name] // it has all its tools called
	i := slices.IndexFunc(cases, func(test capsule.Case) bool {
		return test.Models != nil && test.Expect.Output != nil && (wants == "" || test.Name == wants)
	})
	if i < 0 {
		t.Fatalf("%s has no case with answers", c.Name)
	}
	return cases[i]
}

func caseArgs(test capsule.Case) []string {
	args := []string{"--input", string(test.Input)}
	for field, path := range test.Files {
		args = append(args, "--file", field+"="+path)
	}
	return args
}

// addHand adds a unit that calls others, and tries to get out before and after that.
func addHand(s *server, callees ...string) {
	s.t.Helper()
	program, err := os.ReadFile("testdata/hand/main.py")
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(s.units, "hand")
	write(s.t, string(program), dir, "src", "main.py")
	write(s.t, "FROM aod/base\nCOPY . /capsule/\n", dir, "Dockerfile")
	write(s.t, "import aod\n\naod.run()\n", dir, "run.py")
	write(s.t, "name: hand\nmodel: gpt-4o-mini\nbudgets: {depth: 2}\n", dir, "agent.yaml")
	var granted strings.Builder
	for _, callee := range callees {
		fmt.Fprintf(&granted, "- {name: %s, capsule: %[1]s}\n", callee)
	}
	write(s.t, granted.String(), dir, "tools.yaml")
	write(s.t, `{
  "input": {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "file_path"}}}
  },
  "output": {"type": "object"}
}
`, dir, "schema.json")
}

// hand has the hand call a unit with what a case gives, and returns the called run's record
// and the ways out that the hand found.
func (s *server) hand(c *capsule.Capsule, test capsule.Case, ways []string) (called api.Record, reached []string) {
	s.t.Helper()
	fields := map[string]any{}
	files := []client.InputFile{}
	for field, path := range test.Files {
		fields[field] = filepath.Base(path)
		if c.Contract.Input.IsList(field) {
			fields[field] = []string{filepath.Base(path)}
		}
		files = append(files, client.InputFile{Field: "files", Path: path})
	}
	input, err := json.Marshal(map[string]any{"unit": c.Name, "given": test.Input, "fields": fields, "files": []string{}, "ways": append([]string{}, ways...)})
	if err != nil {
		s.t.Fatal(err)
	}
	record, err := s.submit(s.t.Context(), client.Submission{Unit: "hand", Input: input, Files: files})
	if err != nil {
		s.t.Fatal(err)
	}
	record = s.await(record.ID)
	s.removeLater(record.Image.Ref)
	var gave struct {
		Run     string
		Reached []string
	}
	if err := json.Unmarshal(record.Output, &gave); err != nil || record.Outcome != api.Success {
		s.t.Fatalf("%s: %+v, %v", record.Outcome, record.Error, err)
	}
	called = s.await(gave.Run)
	return called, gave.Reached
}

// waitsFor returns when a container waits for a run of a unit.
func (s *server) waitsFor(unit string) {
	s.t.Helper()
	testkit.Eventually(s.t, "a container waits for "+unit, func() bool {
		stats, err := s.client.Pool(context.Background())
		return err == nil && slices.ContainsFunc(stats.Units, func(u api.PoolUnit) bool { return u.Unit == unit && len(u.Waiting) > 0 })
	})
}

// listenEverywhere listens at every address of this machine, and counts who connects.
func listenEverywhere(t *testing.T) (ways []string, connected *atomic.Int64) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nobody minds
	connected = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connected.Add(1)
			_ = conn.Close() // it was counted
		}
	}()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil {
			ways = append(ways, fmt.Sprintf("%s:%d", network.IP, l.Addr().(*net.TCPAddr).Port))
		}
	}
	return ways, connected
}
