package integration_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// The probe is a capsule that runs the script it is given as a file.
const probeName = "integration-probe"

var probeFiles = map[string]string{
	"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"bash\", \"/io/input/script\"]\n",
	"tools.yaml": "[]\n",
	"agent.yaml": "name: " + probeName + "\n",
	"schema.json": `{
	  "input": {"type": "object", "properties": {"script": {"type": "string", "format": "file_path"}}, "required": ["script"]},
	  "output": {"type": "object", "properties": {"file": {"type": "string", "format": "file_path"}}}
	}`,
}

// submit submits and remembers a run.
func (s *server) submit(t *testing.T, submission client.Submission) api.Record {
	t.Helper()
	record, err := s.client.Runs.Submit(t.Context(), submission)
	if err != nil {
		t.Fatal(err)
	}
	s.runs = append(s.runs, record.ID)
	return record
}

func (s *server) run(t *testing.T, submission client.Submission) api.Record {
	t.Helper()
	return s.end(t, s.submit(t, submission).ID)
}

func (s *server) script(t *testing.T, text string) api.Record {
	t.Helper()
	return s.run(t, scripted(t, text))
}

// begin submits a script and returns when it has written its first line.
func (s *server) begin(t *testing.T, text string) api.Record {
	t.Helper()
	record := s.submit(t, scripted(t, text))
	for entry, err := range s.client.Runs.Log(t.Context(), record.ID, api.LogFilter{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Text == "begun" {
			return record
		}
	}
	t.Fatalf("it has not begun: %s", show(s.end(t, record.ID)))
	return record
}

// end follows the events of a run to the last one and returns its record.
func (s *server) end(t *testing.T, id string) api.Record {
	t.Helper()
	var last api.Event
	for event, err := range s.client.Runs.Events(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Seq != last.Seq+1 {
			t.Errorf("event %d comes after event %d", event.Seq, last.Seq)
		}
		last = event
	}
	if last.Type != api.EventEnd {
		t.Errorf("the last event is %q", last.Type)
	}
	record, err := s.client.Runs.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if found := sandboxes(t.Context(), t, s.engine, id); len(found) > 0 {
		t.Errorf("the run has ended, and its container is there: %+v", found)
	}
	return record
}

// touch makes a file in a run's container.
func (s *server) touch(t *testing.T, container, path string) {
	t.Helper()
	conn, err := s.engine.Exec(t.Context(), container, []string{"touch", path})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
}

// file fetches an output file of a run, which the client holds against its SHA-256.
func (s *server) file(t *testing.T, record api.Record, name string) string {
	t.Helper()
	for _, f := range record.Files {
		if f.Name != name {
			continue
		}
		var content bytes.Buffer
		if err := s.client.Files.Get(t.Context(), record.ID, f, &content); err != nil {
			t.Fatal(err)
		}
		return content.String()
	}
	t.Fatalf("no file %q in %s", name, show(record))
	return ""
}

func scripted(t *testing.T, text string) client.Submission {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return client.Submission{Unit: probeName, Files: []client.InputFile{{Field: "script", Path: path}}}
}

func probeArchive(t *testing.T) *bytes.Buffer {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range probeFiles {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &archive
}

func show(record api.Record) string {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
