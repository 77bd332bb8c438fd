package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// The key of an upstream, and a secret that a program gets: neither may be anywhere else.
const (
	keyCanary    = "Sylvester-and-his-key"
	secretCanary = "Hector-and-his-secret"
)

// tellScript tells everybody what it knows.
const tellScript = `echo "it is $API_KEY"; echo "it is $API_KEY" >&2
ask POST /progress "" "{\"step\":\"it is $API_KEY\"}"
ask GET /upstream/svc/hold
ask GET /upstream/svc/echo
echo "{\"text\":\"it is $API_KEY\",\"length\":${#API_KEY},\"it is $API_KEY\":1}" > /io/output.json
echo hello > "/io/output/it is $API_KEY"
if [[ $(< /io/input.json) == *fail* ]]; then
	echo "{\"error\":{\"type\":\"it is $API_KEY\",\"message\":\"it is $API_KEY\"}}" > /io/output.json
	exit 3
fi
`

// addTeller adds a unit that has an upstream and a secret, and returns what is called while one of its runs asks.
func (s *server) addTeller(more string) (whileAsking chan func()) {
	s.addCaller("teller", tellScript)
	write(s.t, "[]\n", s.units, "teller", "tools.yaml")
	write(s.t, "name: teller\nupstreams: [svc]\nsecrets: {API_KEY: its-secret}\nlimits: {timeout: 5m}\n"+more, s.units, "teller", "agent.yaml")
	write(s.t, "FROM "+dockertest.Image+"\nCOPY run.sh /run.sh\nCMD [\"bash\", \"/run.sh\"]\n"+unique(), s.units, "teller", "Dockerfile")
	whileAsking = make(chan func(), 10)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Svc-Key") != keyCanary || r.Header.Get("X-Api-Key") != "":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/base/hold":
			select {
			case call := <-whileAsking:
				call()
			default:
			}
		case r.URL.Path == "/base/echo":
			_, _ = io.WriteString(w, "you said "+r.Header.Get("X-Svc-Key"))
		}
	}))
	s.t.Cleanup(service.Close)
	secrets := filepath.Join(s.data, "secrets")
	write(s.t, keyCanary+"\n", secrets, "svc-key")
	write(s.t, secretCanary+"\n", secrets, "its-secret")
	file := filepath.Join(s.data, "aod.yaml")
	write(s.t, "upstreams:\n  svc: {url: '"+service.URL+"/base', secret: svc-key, header: X-Svc-Key}\npolicy: {secrets: [its-secret]}\n", file)
	s.flags = append(s.flags, "--config", file)
	return whileAsking
}

func TestNothingShowsAKeyOrASecret(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--log-level", "debug", "--log-format", "json", "--concurrency", "2")
	whileAsking := s.addTeller("")
	s.start()
	shown := map[string]string{}
	look := func() {
		programs := ""
		for _, c := range s.containers() { // one may wait for a run already
			shown["inspect "+c.ID] = dockerSays(t, "inspect", c.ID)
			shown["the init's environment "+c.ID] = dockerSays(t, "exec", c.ID, "cat", "/proc/1/environ", "/proc/1/cmdline")
			programs += dockerSays(t, "exec", c.ID, "sh", "-c", "cat /proc/[0-9]*/environ")
		}
		if !strings.Contains(programs, "API_KEY="+secretCanary) {
			t.Error("the program hasn't its secret")
		}
	}
	whileAsking <- look
	cold := s.await(s.call("teller", `{}`))
	s.removeLater(cold.Image.Ref)
	s.told(cold)
	if len(shown) == 0 {
		t.Fatal("the run asked nothing")
	}
	shown["history"] = dockerSays(t, "history", "--no-trunc", cold.Image.Ref) + dockerSays(t, "inspect", cold.Image.Ref)
	var warm api.Record
	testkit.Eventually(t, "a container waits for a run", func() bool {
		warm = s.await(s.call("teller", `{"do":"fail"}`))
		return warm.Container != nil && warm.Container.WaitedMS > 0
	})
	if warm.Error == nil || warm.Error.Message == "" {
		t.Errorf("%+v", warm)
	}
	for _, path := range []string{"/v1/runs/" + cold.ID, "/v1/runs/" + cold.ID + "/events", "/v1/runs/" + cold.ID + "/logs", "/v1/runs/" + warm.ID, "/v1/runs/" + warm.ID + "/logs", "/v1/units", "/metrics"} {
		_, shown[path] = s.answer(path)
	}
	s.signal(syscall.SIGTERM)
	s.exitCode()
	shown["the log"] = s.log()
	for path, text := range filesBelow(t, s.data) {
		if filepath.Base(filepath.Dir(path)) != "secrets" {
			shown[path] = text
		}
	}
	for where, text := range shown {
		if strings.Contains(where+text, keyCanary) || strings.Contains(where+text, secretCanary) {
			t.Errorf("%s has it", where)
		}
	}
	if !strings.Contains(shown["/v1/runs/"+cold.ID+"/events"], `"name":"svc"`) || !strings.Contains(shown["/metrics"], `aod_upstream_requests_total{rule="",status="200",upstream="svc"}`) {
		t.Error("events or metrics say nothing of the upstream")
	}
	for _, path := range []string{"/hold", "/echo"} {
		if strings.Contains(shown["the log"]+shown["/metrics"]+shown["/v1/runs/"+cold.ID]+shown["/v1/runs/"+cold.ID+"/events"], path) {
			t.Errorf("%s is told", path)
		}
	}
}

// told checks what a run of the teller gave.
func (s *server) told(r api.Record) {
	s.t.Helper()
	if r.Outcome != api.Success || !strings.Contains(string(r.Output), fmt.Sprintf(`"length":%d`, len(secretCanary))) || !strings.Contains(string(r.Output), "it is ****") {
		s.t.Errorf("%s %s %+v", r.Outcome, r.Output, r.Error)
	}
	if len(r.Files) != 1 || r.Files[0].Name != "it is ****cret" || !strings.Contains(string(r.Output), `"it is ****cret":1`) {
		s.t.Errorf("the names: %s %+v", r.Output, r.Files)
	}
	if code, content := s.answer("/v1/runs/" + r.ID + "/files/it%20is%20****cret"); code != http.StatusOK || content != "hello\n" {
		s.t.Errorf("the file by its masked name: %d %q", code, content)
	}
	if u := r.Upstreams; len(u) != 1 || u[0].Name != "svc" || u[0].Requests != 2 || u[0].Refused != 1 || u[0].BytesIn != 9 {
		s.t.Errorf("%+v", u)
	}
}

// A server that dies before a program has its secrets leaves nobody waiting, nor without them. A run whose
// secret isn't there ends.
func TestASecretSurvivesTheServersDeath(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--pool", "0", "--concurrency", "2")
	s.addTeller("")
	s.start()
	s.removeLater(s.await(s.call("teller", `{}`)).Image.Ref)
	id := s.call("teller", `{}`)
	s.until(id, "begins, or is over", func(r api.Record) bool { return r.State != api.Idle || r.Outcome != "" })
	testkit.Eventually(t, "it has a container, or is over", func() bool { return len(s.containers()) > 0 || s.isOver(id) })
	s.kill()
	s.start()
	if r := s.await(id); r.Outcome != api.Success || !strings.Contains(string(r.Output), fmt.Sprint(len(secretCanary))) {
		t.Errorf("%s %s %+v", r.Outcome, r.Output, r.Error)
	}
	if err := os.Remove(filepath.Join(s.data, "secrets", "its-secret")); err != nil {
		t.Fatal(err)
	}
	if r := s.await(s.call("teller", `{}`)); r.Error == nil || r.Error.Kind != api.KindSecretUnavailable || r.Error.Hint == "" {
		t.Errorf("without its secret: %+v", r.Error)
	}
}

func TestAServerWithoutAKeyDoesntStart(t *testing.T) {
	dir := t.TempDir()
	write(t, "upstreams:\n  svc: {url: 'https://svc.example.com', secret: svc-key}\n", dir, "aod.yaml")
	for says, mode := range map[string]os.FileMode{"chmod 600": 0o644, "there is no secret": 0} {
		write(t, keyCanary, dir, "data", "secrets", "svc-key")
		change := func() error { return os.Chmod(filepath.Join(dir, "data", "secrets", "svc-key"), mode) }
		if mode == 0 {
			change = func() error { return os.Remove(filepath.Join(dir, "data", "secrets", "svc-key")) }
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("aod", "serve", "--config", filepath.Join(dir, "aod.yaml"), "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "upstreams.svc: ") || !strings.Contains(string(out), says) || strings.Contains(string(out), keyCanary) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func dockerSays(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), "docker", args...).Output()
	if err != nil && args[0] != "exec" { // of a process that has gone there is no environment
		t.Errorf("docker %s: %v", args[0], err)
	}
	return string(out)
}

// filesBelow are the contents of all files below a directory.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files[path] = string(raw)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}
