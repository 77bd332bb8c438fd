package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
)

// newRemoteServer returns a server whose engine is reached by TCP, and so taken for one that
// sees none of our files and can't mount our sockets.
func newRemoteServer(t *testing.T, flags ...string) *server {
	t.Helper()
	line := newEngineLine(t, "tcp") // which is needed until the server has ended
	s := newServer(t, flags...)
	s.env = []string{"DOCKER_HOST=" + line.host()}
	return s
}

func TestAChainWithAnEngineElsewhereSurvivesKills(t *testing.T) {
	t.Parallel()
	kills := long(t, "AOD_KILLS")
	killChain(t, newRemoteServer(t, "--concurrency", "1"), kills)
}

// porterScript hands itself files of all kinds, one after the other, and writes down what
// it is answered. The callee gives its file back with a line more.
const porterScript = `if [[ $(< /io/input.json) =~ \"doc\":\"([^\"]+)\" ]]; then
	mkdir -p /io/output/back
	{ cat "/io/input/${BASH_REMATCH[1]}"; echo callee; } > /io/output/back/doc
	echo '{"doc":"back/doc"}' > /io/output.json
	exit
fi
cd /io/handoff/outgoing
mkdir sub && echo caller > sub/deep && echo second > second
ln -s /etc/passwd link && ln -s sub alias && mkfifo pipe && ln -s /io/input.json sub/link
head -c 3M /dev/zero > large
for doc in sub/deep second sub/../second link alias/deep sub/link pipe sub missing sub/deep/none ../../input.json large; do
	persist POST /handoff "$doc" "{\"target\":\"porter\",\"args\":{\"doc\":\"$doc\"}}"
	echo "$doc: $status $answer" >> /io/output/answers
done
cat $(find /io/handoff/incoming -type f -size -9 | sort) > /io/output/incoming
(echo > /io/handoff/incoming/mine) 2> /dev/null || echo sealed >> /io/output/incoming
echo '{}' > /io/output.json
`

const porterSchema = `{
  "input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}},
  "output": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}}
}
`

// What a caller is answered, about good files and hostile ones, doesn't depend on where the
// engine is.
func TestFilesOfHandoffsAreCarriedToAnEngineElsewhere(t *testing.T) {
	t.Parallel()
	here, elsewhere := portedBy(newServer(t)), portedBy(newRemoteServer(t))
	if diff := cmp.Diff(here, elsewhere); diff != "" {
		t.Errorf("with an engine here and elsewhere:\n%s", diff)
	}
	contains(t, elsewhere["incoming"], "caller\ncallee\n", "second\ncallee\n", "sealed\n")
	contains(t, elsewhere["answers"], "sub/deep: 200 ", "second: 200 ", "link: 422 ", "alias/deep: 422 ", "pipe: 422 ", "missing: 422 ", "large: 200 ")
}

// portedBy returns the files that a run of porter leaves, without what differs each time.
func portedBy(s *server) map[string]string {
	s.t.Helper()
	s.addCaller("porter", porterScript)
	write(s.t, porterSchema, s.units, "porter", "schema.json")
	s.start()
	record, err := s.submit(s.t.Context(), client.Submission{Unit: "porter", Input: json.RawMessage("{}")})
	if err != nil {
		s.t.Fatal(err)
	}
	record = s.await(record.ID)
	if record.Outcome != api.Success {
		s.t.Fatalf("porter is %s: %+v", record.Outcome, record.Error)
	}
	found := map[string]string{}
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)
	for _, file := range record.Files {
		content, err := s.file(record, file.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		found[file.Name] = ids.ReplaceAllString(string(content), "ID")
	}
	return found
}

// A server elsewhere would go on without its client: it isn't even started.
func TestThereAreNoSessionsWithAnEngineElsewhere(t *testing.T) {
	t.Parallel()
	s := newRemoteServer(t)
	name := uniqueUnit()
	addMCP(t, s.units, name, "")
	s.addPython("caller", "", "- {name: count, capsule: "+name+"}\n")
	s.start()
	response, body := s.speaks(http.MethodPost, name, "", mcpHello)
	if response.StatusCode != http.StatusNotImplemented || !strings.Contains(body, `"unsupported"`) || !strings.Contains(body, "engine elsewhere") || !strings.Contains(body, "hint") {
		t.Errorf("%s %s", response.Status, body)
	}
	if status, body := s.answer("/v1/units/" + name + "/card"); status != http.StatusNotImplemented {
		t.Errorf("its tools: %d %s", status, body)
	}
	if got := sessionContainers(t, s.engine, name); got > 0 {
		t.Errorf("%d containers", got)
	}
	record := s.await(s.call("caller", fmt.Sprintf(`{"steps": [{"unit": %q}]}`, name)))
	s.removeLater(record.Image.Ref)
	if !strings.Contains(string(record.Output), `"status":501,"code":"unsupported"`) {
		t.Errorf("a capsule is told %s, %+v", record.Output, record.Error)
	}
}

// The program of a session is talked with by files of this machine.
func TestThereAreNoConversationsWithAnEngineElsewhere(t *testing.T) {
	t.Parallel()
	s := newRemoteServer(t)
	s.addTalker("talker", keptAlive)
	s.start()
	if _, err := s.client.Sessions.Create(t.Context(), "talker", nil); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "remote engine") {
		t.Errorf("a session: %v", err)
	}
	_, err := s.client.Runs.Submit(t.Context(), client.Submission{Unit: "talker", Input: json.RawMessage(`{"message":"hello"}`)})
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "remote engine") {
		t.Errorf("one turn alone: %v", err)
	}
}
