package integration_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAServerInAContainer(t *testing.T) {
	s := startServer(t, nil)
	for _, c := range []struct {
		what string
		test func(*testing.T)
	}{
		{"has the units of a directory", s.testUnits},
		{"runs a unit", s.testHello},
		{"takes a file and gives one", s.testFiles},
		{"takes a unit", s.testPut},
		{"tells how a run failed", s.testFailure},
		{"takes what a capsule has closed to all others", s.testClosed},
		{"cancels a run", s.testCancel},
		{"goes on with a run after it was killed", s.testKill},
		{"answers the commands beside it", s.testCommands},
	} {
		if !t.Run(c.what, c.test) {
			return
		}
	}
}

func (s *server) testUnits(t *testing.T) {
	units, err := s.client.Units.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, unit := range units {
		names[unit.Name] = unit.Problem == nil
	}
	if !names["hello"] || !names["csv-report"] {
		t.Errorf("units %v", names)
	}
}

func (s *server) testHello(t *testing.T) {
	record := s.run(t, client.Submission{Unit: "hello", Input: json.RawMessage(`{"name":"Ada"}`)})
	if record.Outcome != api.Success || !strings.Contains(string(record.Output), "Hello, Ada!") {
		t.Errorf("%s", show(record))
	}
}

func (s *server) testFiles(t *testing.T) {
	record := s.run(t, client.Submission{
		Unit: "csv-report", Input: json.RawMessage(`{"group_by":"region","chart_column":"revenue"}`),
		Files: []client.InputFile{{Field: "table", Path: "../../../examples/capsules/csv-report/input/sales.csv"}},
	})
	if record.Outcome != api.Success || len(record.Files) != 1 {
		t.Fatalf("%s", show(record))
	}
	want, err := os.ReadFile("../../../examples/capsules/csv-report/tests/expected/revenue-by-region.svg")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), s.file(t, record, record.Files[0].Name)); diff != "" {
		t.Error(diff)
	}
}

func (s *server) testPut(t *testing.T) {
	info, created, err := s.client.Units.Put(t.Context(), probeName, probeArchive(t))
	if err != nil || !created || info.Source != "upload" {
		t.Fatalf("%+v, %t, %v", info, created, err)
	}
	if _, created, err := s.client.Units.Put(t.Context(), probeName, probeArchive(t)); err != nil || created {
		t.Errorf("the same again: %t, %v", created, err)
	}
}

func (s *server) testFailure(t *testing.T) {
	record := s.script(t, "echo to stdout; echo to stderr >&2; exit 3")
	if record.Outcome != api.CapsuleError || record.ExitCode == nil || *record.ExitCode != 3 || record.Retries != 0 {
		t.Errorf("%s", show(record))
	}
	got := map[string]string{}
	for entry, err := range s.client.Runs.Log(t.Context(), record.ID, api.LogFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Stream] += entry.Text
	}
	if got["stdout"] != "to stdout" || got["stderr"] != "to stderr" {
		t.Errorf("log %q", got)
	}
}

// testClosed needs every capability that docker-compose.yml gives.
func (s *server) testClosed(t *testing.T) {
	record := s.script(t, `umask 077
mkdir -p /io/output/deep /workspace/a/b
echo result > /io/output/deep/file; echo scratch > /workspace/a/b/c
echo '{"file":"deep/file"}' > /io/output.json
chmod 0 /io/output.json /io/output/deep/file /io/output/deep /workspace/a/b/c /workspace/a/b /workspace/a`)
	if record.Outcome != api.Success {
		t.Fatalf("%s", show(record))
	}
	if got := s.file(t, record, "deep/file"); got != "result\n" {
		t.Errorf("%q", got)
	}
	attempt := "/data/server/runs/" + record.ID + "/1"
	if file, err := s.container.CopyFileFromContainer(t.Context(), attempt); err == nil {
		file.Close()
		t.Error("the attempt's directory is left")
	}
}

func (s *server) testCancel(t *testing.T) {
	record := s.begin(t, "echo begun; sleep 600")
	if _, err := s.client.Runs.Cancel(t.Context(), record.ID, "not wanted"); err != nil {
		t.Fatal(err)
	}
	record = s.end(t, record.ID)
	if record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "not wanted") {
		t.Errorf("%s", show(record))
	}
}

// testKill has a container of an earlier server's adopted, by the paths of the host.
func (s *server) testKill(t *testing.T) {
	record := s.begin(t, `echo start >> /io/output/starts
echo begun
until [ -e /workspace/go ]; do sleep 0.1; done
echo '{"file":"starts"}' > /io/output.json
echo over`)
	testkit.Eventually(t, "the record names the run's container", func() (is bool) {
		now, err := s.client.Runs.Get(t.Context(), record.ID)
		record = now
		return err == nil && record.Container != nil
	})
	s.kill()
	if state, err := s.engine.Inspect(t.Context(), record.Container.ID); err != nil || !state.Running {
		t.Fatalf("the run without its server: %+v, %v", state, err)
	}
	s.restart()
	s.touch(t, record.Container.ID, "/workspace/go")
	record = s.end(t, record.ID)
	if record.Outcome != api.Success || record.Retries != 0 {
		t.Fatalf("%s", show(record))
	}
	if got := s.file(t, record, "starts"); got != "start\n" {
		t.Errorf("the program started like this: %q", got)
	}
	var lines []string
	for entry, err := range s.client.Runs.Log(t.Context(), record.ID, api.LogFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, entry.Text)
	}
	if strings.Join(lines, " ") != "begun over" {
		t.Errorf("log %q", lines)
	}
}

// testCommands proves that the image's health check and `docker exec` find the server.
func (s *server) testCommands(t *testing.T) {
	if code, output := s.exec("/aod", "units", "--quiet"); code != 0 || !strings.Contains(output, probeName) {
		t.Errorf("exit code %d, %s", code, output)
	}
	if code, output := s.exec("/aod", "ps", "--all"); code != 0 || !strings.Contains(output, "hello") {
		t.Errorf("exit code %d, %s", code, output)
	}
}

func TestAServerWhoseDataIsInItsContainerAloneSaysSo(t *testing.T) {
	s := startServer(t, map[string]string{"AOD_DATA": "/tmp/aod", "AOD_TOKEN_FILE": "/data/token", "AOD_MIN_FREE_DISK": "0"})
	record := s.run(t, client.Submission{Unit: "hello", Input: json.RawMessage(`{"name":"Ada"}`)})
	if record.Outcome != api.SystemError || record.Error.Kind != "unsupported" || record.Retries != 0 {
		t.Fatalf("%s", show(record))
	}
	if !strings.Contains(record.Error.Message, "must be on a volume or a bind mount") || !strings.Contains(record.Error.Hint, "aod-data:/data") {
		t.Errorf("%s\n%s", record.Error.Message, record.Error.Hint)
	}
}
