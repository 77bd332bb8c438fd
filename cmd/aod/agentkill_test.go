package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// editScript changes a file before the server dies, and others while it is away.
const editScript = `echo two >> a.txt
echo started >&2
sleep 1
echo new > b.txt
rm gone.txt
echo done
`

func TestChangesOfAnAgentOutliveTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	write(t, "FROM "+dockertest.Image+"\nCOPY edit.sh /edit.sh\n", s.units, "editor", "Dockerfile")
	write(t, editScript, s.units, "editor", "edit.sh")
	write(t, "name: editor\nkind: agent\naccess: read-write\nagent: {command: [bash, -e, /edit.sh], dir: /workspace/project}\n", s.units, "editor", "agent.yaml")
	dir := t.TempDir()
	write(t, "one\n", dir, "a.txt")
	write(t, "x\n", dir, "gone.txt")
	project, err := workspace.Scan(t.Context(), dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	record, err := s.submit(t.Context(), client.Submission{Unit: "editor", Input: []byte(`{"message":"x"}`), Project: project.WriteTar})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitLine(record.ID, "started")
	s.kill()
	testkit.Eventually(t, "the agent ends by itself", func() bool { return !s.runsAContainer() })
	s.start()
	if record = s.await(record.ID); record.Outcome != api.Success || record.Retries != 0 || record.Changes == nil || record.Changes.Partial {
		t.Fatalf("%s after %d retries, %+v: %+v", record.Outcome, record.Retries, record.Changes, record.Error)
	}
	s.kill() // what is told of the changes is on the disk
	s.start()
	raw, err := s.client.Changes(t.Context(), record.ID)
	if err != nil {
		t.Fatal(err)
	}
	found, err := workspace.ReadChanges(raw)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range found.Changes {
		var content bytes.Buffer
		if c.Op != api.OpDelete {
			if err := s.client.ChangedFile(t.Context(), record.ID, c, &content); err != nil {
				t.Error(err)
			}
		}
		got[c.Op+" "+c.Path] = content.String()
	}
	want := map[string]string{api.OpModify + " a.txt": "one\ntwo\n", api.OpAdd + " b.txt": "new\n", api.OpDelete + " gone.txt": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// runsAContainer reports whether the program of any run goes on.
func (s *server) runsAContainer() bool {
	s.t.Helper()
	for _, ref := range s.containers() {
		state, err := s.engine.Inspect(context.Background(), ref.ID)
		if err != nil || state.Running {
			return true
		}
	}
	return false
}
