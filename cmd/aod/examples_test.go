package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
)

// An example gives the same on a server as without one: a run that succeeds, and one that fails. That it
// gives it, is in make examples, and that a server gives what a command gives, in serve.txtar.
func TestTheExamplesGiveTheSameOnAServer(t *testing.T) {
	onlyLong(t, "AOD_EXAMPLES")
	s, work := exampleServer(t, "")
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	places := []string{filepath.Join(examples, "capsules"), filepath.Join(examples, "au"), filepath.Join(examples, "flows"), elsewhere(t, examples)}
	for _, place := range places {
		s.flags = append(s.flags, "--units", place)
	}
	s.start()
	work()
	alone(t)
	t.Setenv("AOD_TOKEN", s.token)
	t.Setenv("AOD_UNITS", strings.Join(places, string(filepath.ListSeparator)))
	for _, place := range places {
		dirs, err := filepath.Glob(filepath.Join(place, "*", "agent.yaml"))
		if err != nil || len(dirs) < 2 {
			t.Fatalf("%d examples in %s: %v", len(dirs), place, err)
		}
		for _, dir := range dirs {
			sameOnAServer(t, s, filepath.Dir(dir))
		}
	}
}

// exampleServer returns a server with settings, and what has a worker join it where its sandboxes are to be at one.
func exampleServer(t *testing.T, settings string) (s *server, work func()) {
	t.Helper()
	if os.Getenv("AOD_FAR") != "" {
		settings += "local_sandboxes: false\n"
	}
	file := filepath.Join(t.TempDir(), "serve.yaml")
	write(t, settings, file)
	s = newServer(t, "--config", file)
	return s, func() {
		t.Helper()
		if os.Getenv("AOD_FAR") != "" {
			newFarProcess(t, s).start()
		}
	}
}

func sameOnAServer(t *testing.T, s *server, dir string) {
	t.Helper()
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range exampleRuns(t, c) {
		t.Run(c.Name+" "+name, func(t *testing.T) {
			here := gave(t, append([]string{"run", dir}, args...))
			there := gave(t, append([]string{"run", c.Name, "--server", s.url()}, args...))
			if diff := cmp.Diff(here, there); diff != "" {
				t.Errorf("without a server and with one: %s", diff)
			}
		})
	}
}

// exampleRuns returns the arguments of the first case that succeeds and of the first that
// fails, by name. A field for several files gets two.
func exampleRuns(t *testing.T, c *capsule.Capsule) map[string][]string {
	t.Helper()
	cases, err := c.Cases()
	if err != nil {
		t.Fatal(err)
	}
	played := func(test capsule.Case) bool { return test.Rehearsal != nil }
	if cases = slices.DeleteFunc(cases, played); len(cases) == 0 {
		return nil // its cases say what units give
	}
	works := func(test capsule.Case) bool {
		return test.Expect.Error == nil && test.Expect.ExitCode == nil && test.Expect.Outcome == ""
	}
	fails := func(test capsule.Case) bool { return !works(test) }
	runs := map[string][]string{}
	for _, kind := range []func(capsule.Case) bool{works, fails} {
		if i := slices.IndexFunc(cases, kind); i >= 0 {
			args := []string{"--input", string(cases[i].Input)}
			for field, path := range cases[i].Files {
				args = append(args, "--file", field+"="+path)
			}
			runs[cases[i].Name] = args
		}
	}
	if len(runs) == 0 {
		t.Fatalf("%s has no test case", c.Name)
	}
	if c.Name == "research-brief" {
		input := filepath.Join(c.Dir, "input")
		runs["two-documents"] = []string{
			"--set", "title=Two documents", "--file", "documents=" + filepath.Join(input, "survey.pdf"),
			"--file", "documents=" + filepath.Join(input, "board.png"), "--file", "tables=" + filepath.Join(input, "crossings.csv"),
		}
	}
	return runs
}

// end is what counts of a run: what it gave, however long it took and wherever that lies.
type end struct {
	Code    int
	Outcome api.Outcome
	Output  string
	Error   string
	Files   map[string]string // digest by name
}

// runID is the id of a run, which an example may tell of a run that it called.
var runID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// gave carries out a command that prints a run's record, or refuses its input.
func gave(t *testing.T, args []string) end {
	t.Helper()
	code, stdout, stderr := command(t, t.Context(), append(args, "--json", "--quiet", "--out", t.TempDir())...)
	got := end{Code: code, Files: map[string]string{}}
	if stdout == "" && code == 2 {
		return got
	}
	var record api.Record
	if err := json.Unmarshal([]byte(stdout), &record); err != nil {
		t.Fatalf("aod %v: code %d, %v\n%s", args, code, err, stderr)
	}
	got.Outcome, got.Output = record.Outcome, runID.ReplaceAllString(string(record.Output), "ID")
	if record.Error != nil {
		got.Error = runID.ReplaceAllString(strings.Join([]string{record.Error.Kind, record.Error.Type, record.Error.Message}, " | "), "ID")
	}
	for _, f := range record.Files {
		got.Files[f.Name] = f.SHA256
	}
	return got
}

// elsewhere starts the example of an agent elsewhere and returns a directory with the units
// that stand for it.
func elsewhere(t *testing.T, examples string) string {
	t.Helper()
	agent := exec.Command("python3", filepath.Join(examples, "remote-agent/agent.py"), "--port", "0")
	said, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Skipf("the agent elsewhere needs python3: %v", err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait() // it was killed
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	address, listens := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !listens {
		t.Fatalf("the agent says %q, %v", line, err)
	}
	place := t.TempDir()
	for _, name := range []string{"unit", "reading-time"} {
		if err := os.CopyFS(filepath.Join(place, name), os.DirFS(filepath.Join(examples, "remote-agent", name))); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(place, "unit", "agent.yaml")
	raw, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, strings.Replace(string(raw), "http://127.0.0.1:8000", address, 1), settings)
	return place
}
