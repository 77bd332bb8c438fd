package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// workerScript does what a run's input says. A byte in a file of the attempt, and a line
// of the log, tell of each start of the program.
const workerScript = `printf x >> /io/output/starts
echo started
input=$(< /io/input.json)
number() { [[ $input =~ \"$1\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0; }
(( $(number linger) > 0 )) && trap 'echo stopping; sleep 1; exit 143' TERM
for ((i = 1; i <= $(number ticks); i++)); do
	sleep 0.1
	echo "tick $i"
done
if (( $(number hold) > 0 )); then
	until [ -e /workspace/go ]; do sleep 0.05; done
fi
if (( $(number exit) > 0 )); then
	echo '{"error":{"type":"Planned","message":"as it was asked for"}}' > /io/output.json
	exit "$(number exit)"
fi
mark=$(number mark)
if [ -e /io/input/doc ]; then
	cp /io/input/doc /io/output/copy || exit # a disk that is full now may have room for the result in a moment
	echo "{\"mark\":$mark,\"copy\":\"copy\"}" > /io/output.json
else
	echo "{\"mark\":$mark}" > /io/output.json
fi
`

const workerSchema = `{
  "input": {"type": "object", "properties": {
    "ticks": {"type": "int"}, "linger": {"type": "int"}, "exit": {"type": "int"}, "mark": {"type": "int"},
    "hold": {"type": "int"},
    "doc": {"type": "string", "format": "file_path"}
  }, "additionalProperties": false},
  "output": {"type": "object", "properties": {
    "mark": {"type": "int"}, "copy": {"type": "string", "format": "file_path"}
  }, "required": ["mark"], "additionalProperties": false}
}
`

// work is the input of a worker.
type work struct {
	Mark  int `json:"mark"`
	Ticks int `json:"ticks,omitempty"` // of a tenth of a second, a line of the log each
	Exit  int `json:"exit,omitempty"`
	// Linger makes it take a second for its end when it is told to end.
	Linger int `json:"linger,omitempty"`
	// Hold makes it go on after its ticks until it is let go, see letGo.
	Hold int `json:"hold,omitempty"`
}

func (w work) input() json.RawMessage {
	raw, _ := json.Marshal(w) // numbers
	return raw
}

// addWorker gives the server a worker to find. Workers of one dockerfile have one image;
// what is added to that makes another one.
func (s *server) addWorker(name, dockerfile string) {
	s.t.Helper()
	writeWorker(s.t, filepath.Join(s.units, name), name, dockerfile)
	s.runs(name, workInside)
}

func writeWorker(t *testing.T, dir, name, dockerfile string) {
	t.Helper()
	write(t, "FROM "+dockertest.Image+"\n"+dockerfile+"COPY run.sh /run.sh\nCMD [\"bash\", \"/run.sh\"]\n", dir, "Dockerfile")
	write(t, workerScript, dir, "run.sh")
	write(t, workerSchema, dir, "schema.json")
	write(t, "name: "+name+"\n", dir, "agent.yaml")
	write(t, "[]\n", dir, "tools.yaml")
}

// unique is a step of a Dockerfile that was never built before.
func unique() string { return fmt.Sprintf("ENV BUILT_AT=%d\n", time.Now().UnixNano()) }

// submit has a run accepted, however long it takes. The error is a refusal.
func (s *server) submit(ctx context.Context, sub client.Submission) (api.Record, error) {
	for {
		record, err := s.client.Runs.Submit(ctx, sub)
		if !fault.Is(err, fault.Unavailable) {
			return record, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return record, errors.Join(err, ctx.Err())
		}
	}
}

// mustSubmit has a run of a worker accepted.
func (s *server) mustSubmit(unit string, w work) string {
	s.t.Helper()
	record, err := s.submit(s.t.Context(), client.Submission{Unit: unit, Input: w.input()})
	if err != nil {
		s.t.Fatal(err)
	}
	return record.ID
}

// letGo lets runs end that hold. Their programs are running.
func (s *server) letGo(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		dirs, _ := filepath.Glob(filepath.Join(s.home(), "runs", id, "*", "workspace"))
		if len(dirs) == 0 {
			s.t.Errorf("run %s has no workspace: it doesn't hold", id)
		}
		for _, dir := range dirs {
			write(s.t, "", dir, "go")
		}
	}
}

// startsOf returns how many of a run's attempts have started its program, by its log. An
// error says that a line of that is missing, or is there twice.
func (s *server) startsOf(id string) (starts int, err error) {
	ticks, attempt := 0, 0
	for entry, err := range s.client.Runs.Log(context.Background(), id, api.LogFilter{}) {
		switch {
		case err != nil:
			return starts, err
		case entry.Text == "started" && entry.Attempt > attempt:
			starts, ticks, attempt = starts+1, 0, entry.Attempt
		case entry.Text == "stopping":
		case entry.Text == fmt.Sprintf("tick %d", ticks+1) && entry.Attempt == attempt:
			ticks++
		default:
			return starts, fmt.Errorf("the log has %q of attempt %d behind tick %d of attempt %d", entry.Text, entry.Attempt, ticks, attempt)
		}
	}
	return starts, nil
}

// file returns an output file of a run, which the client has checked against its digest.
func (s *server) file(record api.Record, name string) ([]byte, error) {
	for _, f := range record.Files {
		if f.Name == name {
			var content bytes.Buffer
			err := s.client.Files.Get(context.Background(), record.ID, f, &content)
			return content.Bytes(), err
		}
	}
	return nil, fmt.Errorf("the run has no file %q", name)
}
