package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// shown waits until a run has shown so many parts, and returns them as lines.
func (s *server) shown(run string, n int) (lines []string) {
	s.t.Helper()
	testkit.Eventually(s.t, "the run shows what it has", func() bool {
		lines = nil
		for part, err := range s.client.Artifacts.List(s.t.Context(), run) {
			if err != nil {
				return false
			}
			line := part.ID + ":"
			for _, p := range part.Parts {
				if line += p.Text; p.File != nil {
					line += p.File.Name
				}
			}
			lines = append(lines, line)
		}
		return len(lines) >= n
	})
	return lines
}

func TestARunOnAServerHearsAndShowsWhileItGoesOn(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addCaller("teller", "")
	s.runs("teller", tellInside)
	s.start()
	record, err := s.submit(t.Context(), client.Submission{Unit: "teller", Input: []byte(`{}`), Context: "a talk"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "story:one |story:two |story:three|the file:f.txt"
	if got := strings.Join(s.shown(record.ID, 4), "|"); got != want {
		t.Errorf("it shows %s", got)
	}
	s.aod("say", record.ID, "go on")
	s.kill()
	s.start()
	s.aod("say", record.ID, "--data", `{"stop":true}`)
	output := string(s.await(record.ID).Output)
	if strings.Count(output, `"go on"`) != 1 || strings.Count(output, `"data":{"stop":true}`) != 1 || !strings.Contains(output, `"n":`) {
		t.Errorf("it heard %s", output)
	}
	if got := strings.Join(s.shown(record.ID, 4), "|"); got != want {
		t.Errorf("after a kill it has shown %s", got)
	}
	for part, err := range s.client.Artifacts.List(t.Context(), record.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if part.ID == "the file" {
			var content bytes.Buffer
			if err := s.client.Artifacts.File(t.Context(), record.ID, part.ID, *part.Parts[0].File, &content); err != nil || content.String() != "first\n" {
				t.Errorf("its file is %q: %v", content.String(), err)
			}
		}
	}
	for run, err := range s.client.Runs.List(t.Context(), api.Filter{Context: "a talk"}) {
		if err != nil || run.ID != record.ID {
			t.Errorf("of the context: %+v %v", run, err)
		}
	}
	if page := s.aod("runs", record.ID); !strings.Contains(page, "a talk") || !strings.Contains(page, "story") || !strings.Contains(page, "f.txt") {
		t.Errorf("aod runs shows %s", page)
	}
}

func TestAProgramThatRejectsIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addCaller("teller", "")
	s.runs("teller", tellInside)
	s.start()
	run := s.call("teller", `{}`)
	s.shown(run, 4)
	s.aod("say", run, "stop: reject")
	record := s.await(run)
	if record.Outcome != api.CapsuleError || record.Retries != 0 || record.Error == nil || record.Error.Type != "Rejected" ||
		record.Error.Category != api.CategoryPermanent || record.Error.Message != "that is not mine to do" {
		t.Errorf("record %+v, error %+v", record, record.Error)
	}
}

// pythonTeller does with the library what tellInside does without.
const pythonTeller = `import aod


def execute(payload: dict) -> dict:
    aod.artifact("one ", name="story")
    aod.artifact("two", name="story", append=True, last=True)
    with open(aod.output_path("f.txt"), "w") as file:
        file.write("first")
    aod.artifact(file="f.txt", id="the file")
    seen, words = 0, []
    while not words or words[-1] != "stop":
        for message in aod.messages(after=seen, wait="5s"):
            seen = message.n
            words.append(message.text)
    if payload.get("reject"):
        raise aod.Rejected("that is not mine to do")
    return {"words": words}
`

func TestAPythonCapsuleHearsAndShows(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	dir := filepath.Join(s.units, "pythonteller")
	for name, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule/\n", "run.py": "import aod\n\naod.run()\n", "src/main.py": pythonTeller,
		"agent.yaml": "name: pythonteller\nlimits: {timeout: 5m}\n", "tools.yaml": "[]\n", "schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	} {
		write(t, content, dir, filepath.FromSlash(name))
	}
	s.start()
	run := s.call("pythonteller", `{}`)
	if got := strings.Join(s.shown(run, 3), "|"); got != "story:one |story:two|the file:f.txt" {
		t.Errorf("it shows %s", got)
	}
	s.aod("say", run, "go on")
	s.aod("say", run, "stop")
	if got := string(s.await(run).Output); got != `{"words":["go on","stop"]}` {
		t.Errorf("it heard %s", got)
	}
	run = s.call("pythonteller", `{"reject":true}`)
	s.aod("say", run, "stop")
	if record := s.await(run); record.Error == nil || record.Error.Type != "Rejected" || record.Error.Category != api.CategoryPermanent || record.Retries != 0 {
		t.Errorf("record %+v", record.Error)
	}
}
