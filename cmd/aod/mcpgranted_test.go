package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// askStep is one request of testdata/mcpserver/asker.py: a list of tools, or a call.
type askStep struct {
	Name      string            `json:"name,omitempty"`
	Arguments map[string]string `json:"arguments,omitempty"` // LINK is the file of an earlier result
}

// asked is what it heard.
type asked struct {
	Tools []string
	Told  []struct {
		Progress, Total float64
		Message         string
	}
	Code   int
	Failed bool
	Text   string
}

// addAsker adds a unit "asker" that asks /mcp, with a tools.yaml.
func (s *server) addAsker(tools string) { s.addPython("asker", "", tools) }

// addPython adds a unit whose program is that of its name in testdata/mcpserver.
func (s *server) addPython(name, agent, tools string) {
	s.t.Helper()
	program, err := os.ReadFile(filepath.Join("testdata", "mcpserver", name+".py"))
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(s.units, name)
	write(s.t, string(program), dir, "run.py")
	write(s.t, "FROM aod/base\nCOPY run.py /run.py\nENTRYPOINT [\"python3\", \"/run.py\"]\nCMD []\n", dir, "Dockerfile")
	write(s.t, "name: "+name+"\n"+agent, dir, "agent.yaml")
	write(s.t, tools, dir, "tools.yaml")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, dir, "schema.json")
}

// asks has the asker go through steps, and returns what it heard and how much JSON that was.
func (s *server) asks(steps ...askStep) (heard []asked, size int) {
	s.t.Helper()
	input, err := json.Marshal(map[string]any{"steps": steps})
	if err != nil {
		s.t.Fatal(err)
	}
	record := s.await(s.call("asker", string(input)))
	s.removeLater(record.Image.Ref)
	var got struct {
		Said []asked
		Size int
	}
	if err := json.Unmarshal(record.Output, &got); err != nil || len(got.Said) != len(steps) {
		s.t.Fatalf("%s: %+v, %v", record.Outcome, record.Error, err)
	}
	return got.Said, got.Size
}

// A capsule has the tools that it is granted and no others, is told of a call while it goes on, and passes
// a file on by its URI: the JSON of that is small however large the file is.
func TestACapsuleHasTheToolsThatItIsGranted(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	s := newServer(t, "--concurrency", "1")
	s.addWorker("other", "")
	s.addCaller("maker", `ask POST /progress "" '{"percent":40,"step":"two","message":"of five"}'
head -c `+fmt.Sprint(size)+` /dev/urandom > /io/output/large.bin
sleep 0.5
echo "{\"sum\":\"$(sha256sum < /io/output/large.bin)\"}" > /io/output.json
`)
	s.addCaller("taker", `echo "{\"sum\":\"$(cat /io/input/*.bin | sha256sum)\"}" > /io/output.json`+"\n")
	write(t, `{"input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}}, "output": {"type": "object"}}`, s.units, "taker", "schema.json")
	s.addAsker("- {name: make, capsule: maker}\n- {name: take, capsule: taker}\n")
	s.start()
	heard, bytes := s.asks(askStep{}, askStep{Name: "make"}, askStep{Name: "take", Arguments: map[string]string{"doc": "LINK"}}, askStep{Name: "other"})
	if !slices.Equal(heard[0].Tools, []string{"make", "take"}) {
		t.Errorf("it has the tools %q", heard[0].Tools)
	}
	made, took, other := heard[1], heard[2], heard[3]
	if made.Failed || made.Code != 0 || took.Failed || made.Text != took.Text || !strings.Contains(made.Text, "sum") {
		t.Errorf("%+v", heard)
	}
	tells := false // beside signs of life, where it takes long to start
	for _, told := range made.Told {
		tells = tells || told.Message == "two: of five" && told.Progress == 40 && told.Total == 100
	}
	if !tells {
		t.Errorf("of its call it is told %+v", made.Told)
	}
	if other.Code != -32602 {
		t.Errorf("not granted: %+v", other)
	}
	if bytes > 16<<10 {
		t.Errorf("%d bytes of JSON for a file of %d", bytes, size)
	}
	for _, run := range s.callees(s.sessionRuns("asker")[0].ID) {
		if record := s.await(run.ID); run.Unit == "other" || run.Unit == "maker" && record.Files[0].SizeBytes != size {
			t.Errorf("it has called %s, which gave %+v", run.Unit, record.Files)
		}
	}
}
