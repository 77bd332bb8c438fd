package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// hosts are servers of the test's own at 127.0.0.1: by TLS, and without.
type hosts struct{ tls, plain string }

func newHosts(t *testing.T) hosts {
	t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
			return
		}
		_, _ = fmt.Fprintf(w, "hello from %s", strings.Split(r.Host, ":")[0])
	})
	secure, plain := httptest.NewUnstartedServer(answer), httptest.NewServer(answer)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are cut off
	secure.StartTLS()
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	port := func(s *httptest.Server) string {
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		return port
	}
	return hosts{port(secure), port(plain)}
}

// addReach gives the server a unit that reaches for hosts, and one that it may call.
func addReach(t *testing.T, units, egress string) {
	t.Helper()
	dir := filepath.Join(units, "reach")
	program, err := os.ReadFile("testdata/reach/main.py")
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(program), dir, "src", "main.py")
	write(t, "import aod\n\naod.run()\n", dir, "run.py")
	write(t, "FROM aod/base\nCOPY . /capsule/\n", dir, "Dockerfile")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, dir, "schema.json")
	write(t, "- {name: callee, capsule: callee}\n", dir, "tools.yaml")
	write(t, "name: reach\nwarm: 1\nlimits: {timeout: 2m, pids: 200}\n"+egress, dir, "agent.yaml")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, "reach"), "./testdata/reach")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(units, "callee"), os.DirFS("../../examples/capsules/hello")); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(units, "callee", "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, strings.Replace(string(raw), "name: hello", "name: callee", 1), units, "callee", "agent.yaml")
}

type reachInput struct {
	URLs     []string `json:"urls"`
	Connects []string `json:"connects"`
	Many     string   `json:"many"` // the authority of very many tunnels; "": none
}

type reached struct {
	Python, Go, Raw, Called []string
	Over                    string
}

// reachFor runs the unit and returns its output with the record.
func (s *server) reachFor(in reachInput) (got reached, record api.Record) {
	s.t.Helper()
	if in.URLs == nil {
		in.URLs = []string{}
	}
	if in.Connects == nil {
		in.Connects = []string{}
	}
	raw, _ := json.Marshal(in)
	record, err := s.submit(s.t.Context(), client.Submission{Unit: "reach", Input: raw})
	if err != nil {
		s.t.Fatal(err)
	}
	record = s.until(record.ID, "ends", func(r api.Record) bool { return r.Outcome != "" })
	if err := json.Unmarshal(record.Output, &got); err != nil || record.Outcome != api.Success {
		s.t.Fatalf("%s: %+v, %v\n%s", record.Outcome, record.Error, err, s.log())
	}
	return got, record
}

// What a program reaches by name and what not, from cold and warm sandboxes, as Python and Go
// programs do it.
func TestAProgramReachesTheHostsOfItsUnit(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	h := newHosts(t)
	egress := fmt.Sprintf("egress: [good.example:%s, 'http://*.good.example:%s', localhost:%s]\n", h.tls, h.plain, h.tls)
	s := newServer(t, "--pool", "1", "--config", filepath.Join(t.TempDir(), "aod.yaml"))
	config := s.flags[len(s.flags)-1]
	addReach(t, s.units, egress)
	write(t, fmt.Sprintf("policy: {egress: [good.example:%s, '*.good.example', 'http://*.good.example:%s', localhost:%s]}\negress_private: [good.example=127.0.0.1, www.good.example=127.0.0.1]\n",
		h.tls, h.plain, h.tls), config)
	s.start()

	in := reachInput{
		URLs: []string{
			"https://good.example:" + h.tls + "/canary-path?canary-query", "http://www.good.example:" + h.plain + "/canary-path", "http://www.good.example:" + h.plain + "/moved",
			"https://evil.example/", "http://evil.example/", "https://other.good.example/", "https://169.254.169.254/", "http://good.example:" + h.plain + "/",
		},
		Connects: []string{"localhost:" + h.tls, "127.0.0.1:" + h.tls, "[::1]:" + h.tls, "0x7f.1:443"},
	}
	got, record := s.reachFor(in)
	for by, answers := range map[string][]string{"Python": got.Python, "Go": got.Go} {
		for i, want := range []string{
			"200 hello from good.example", "200 hello from www.good.example", `egress: [http://evil.example]`,
			"egress: [evil.example]", "egress: [http://evil.example]", "may not reach other.good.example", "by its name", "may not reach http://good.example:",
		} {
			if by == "Go" && want == "by its name" {
				want = "an address" // it shows the status line alone
			}
			if !strings.Contains(answers[i], want) {
				t.Errorf("%s, %s: %s", by, in.URLs[i], answers[i])
			}
		}
	}
	for i, line := range got.Raw {
		want := "403 an address can't be reached"
		if i == 0 {
			want = "403 localhost:" + h.tls + " leads to no public address"
		}
		if !strings.Contains(line, want) {
			t.Errorf("%s: %s", in.Connects[i], line)
		}
	}
	rows := map[string]api.EgressRow{}
	for _, row := range record.Egress {
		rows[fmt.Sprintf("%s:%d", row.Host, row.Port)] = row
	}
	if good := rows["good.example:"+h.tls]; good.Tunnels != 2 || good.BytesIn == 0 || good.BytesOut == 0 || good.Refused != 0 {
		t.Errorf("%+v", record.Egress)
	}
	if evil := rows["evil.example:443"]; evil.Refused != 2 || evil.Tunnels != 0 || rows["localhost:"+h.tls].Refused != 1 {
		t.Errorf("%+v", record.Egress)
	}
	s.tellsOfHosts(record.ID, map[string]string{"good.example:" + h.tls: "", "evil.example:443": "egress", "localhost:" + h.tls: "egress_private"})

	testkit.Eventually(t, "a run gets a container that waited", func() bool {
		s.waitsFor("reach")
		got, record = s.reachFor(reachInput{URLs: in.URLs[:1]})
		if got.Python[0] != "200 hello from good.example" || got.Go[0] != got.Python[0] {
			t.Fatalf("%+v", got)
		}
		return record.Container.WaitedMS > 0
	})
	kept, _ := json.Marshal(record.Egress)
	for what, text := range map[string]string{"log": s.log(), "metrics": s.metrics(), "record": string(kept)} {
		if strings.Contains(text, "canary") || what != "record" && strings.Contains(text, "good.example") {
			t.Errorf("the %s has what it should not:\n%s", what, text)
		}
	}
	if !strings.Contains(s.metrics(), "aod_egress_tunnels_total") {
		t.Error("no metric")
	}
}

// tellsOfHosts checks the events of hosts, each of which comes once.
func (s *server) tellsOfHosts(id string, want map[string]string) {
	s.t.Helper()
	seen := map[string]int{}
	for e, err := range s.client.Runs.Events(s.t.Context(), id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(e.Data), "canary") {
			s.t.Errorf("an event of type %s has what it should not: %s", e.Type, e.Data)
		}
		if data, _ := e.Decode(); e.Type == api.EventEgress {
			told := data.(api.EgressEvent)
			seen[fmt.Sprintf("%s:%d %s", told.Host, told.Port, told.Refused)]++
		}
	}
	for to, refused := range want {
		if seen[to+" "+refused] != 1 {
			s.t.Errorf("%s %s: %v", to, refused, seen)
		}
	}
}

func (s *server) metrics() string {
	s.t.Helper()
	answer, err := s.get(context.Background(), "/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, _ := io.ReadAll(answer.Body)
	return string(raw)
}

// A thousand tunnels, one after the other, leave the server as it was, and 32 at once don't keep
// their sandbox from calling others.
func TestTunnelsStopNothingAndLeaveNothing(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_LOAD")
	dockertest.Require(t)
	h := newHosts(t)
	s := newServer(t, "--pool", "0", "--config", filepath.Join(t.TempDir(), "aod.yaml"))
	s.program = shipped.Path(t) // the race detector takes memory
	addReach(t, s.units, "egress: [good.example:"+h.tls+"]\n")
	write(t, "policy: {egress: [good.example:"+h.tls+"]}\negress_private: [good.example=127.0.0.1]\n", s.flags[len(s.flags)-1])
	s.start()
	s.reachFor(reachInput{Connects: []string{"evil.example:443"}})
	descriptors, goroutines, memory := s.descriptors(), s.metric("go_goroutines"), s.memoryNow()
	got, record := s.reachFor(reachInput{Many: "good.example:" + h.tls})
	if !strings.Contains(got.Over, "429") || len(got.Called) != 2 || got.Called[1] != "Hello, 1!" {
		t.Errorf("%+v", got)
	}
	if row := record.Egress[0]; row.Tunnels != 1032 || row.Refused != 1 {
		t.Errorf("%+v", row)
	}
	testkit.Eventually(t, "descriptors and goroutines as before", func() bool {
		return s.descriptors() <= descriptors+3 && s.metric("go_goroutines") <= goroutines+6
	})
	testkit.Eventually(t, fmt.Sprintf("no more memory than %d MiB and what tunnels may take", memory>>20), func() bool {
		return s.memoryNow() <= memory+tunnelsMemory // a busy garbage collector gives it back late
	})
}

// tunnelsMemory is how much a server's memory may grow by a thousand tunnels, in bytes: less than
// one buffer of each.
const tunnelsMemory = 24 << 20

// descriptors returns how many files and connections the server has open.
func (s *server) descriptors() int {
	s.t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(open)
}

// A command honours the unit, and says which hosts it may reach.
func TestACommandSaysWhatAUnitMayReach(t *testing.T) {
	dockertest.Require(t)
	h := newHosts(t)
	units := t.TempDir()
	addReach(t, units, "egress: [good.example:"+h.tls+"]\n")
	t.Setenv("AOD_EGRESS_PRIVATE", "good.example=127.0.0.1")
	input := fmt.Sprintf(`{"urls": ["https://good.example:%s/"], "connects": ["evil.example:443"], "many": ""}`, h.tls)
	code, stdout, stderr := command(t, t.Context(), "run", filepath.Join(units, "reach"), "--input", input, "--out", t.TempDir())
	if code != 0 || !strings.Contains(stdout, "200 hello from good.example") {
		t.Errorf("%d %s\n%s", code, stdout, stderr)
	}
	contains(t, stderr, "reach may reach good.example:"+h.tls, "reach reaches good.example:"+h.tls, "refused: reach may not reach evil.example:443 (egress)")

	t.Setenv("AOD_EGRESS_PRIVATE", "10.0.0.1")
	if code, _, stderr := command(t, t.Context(), "run", filepath.Join(units, "reach"), "--input", input); code != 2 || !strings.Contains(stderr, `"10.0.0.1" is an address`) {
		t.Errorf("%d %s", code, stderr)
	}
}
