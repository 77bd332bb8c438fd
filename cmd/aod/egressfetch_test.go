package main

import (
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
)

// fetching is a wrapped agent that has curl and git fetch from a host that it may reach, and from
// one that it may not.
const fetching = `
exec 2>&1
curl -sSk "https://good.example:$1/canary"; echo
curl -sSk "https://evil.example:$1/"; echo "curl: $?"
cd "$TMPDIR" && git clone -q "https://good.example:$1/repo.git" && cat repo/README
git clone -q "https://evil.example:$1/repo.git" evil; echo "git: $?"
`

// repository is a host by TLS with a git repository and a page.
func repository(t *testing.T) (port string) {
	t.Helper()
	dir := t.TempDir()
	script := `git init -q work && cd work && echo "read me" > README && git add README &&
git -c user.name=a -c user.email=a@example.com commit -qm first && git clone -q --bare . ../repo.git && git -C ../repo.git update-server-info`
	command := exec.CommandContext(t.Context(), "sh", "-c", script)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, "a page", dir, "canary")
	host := httptest.NewUnstartedServer(http.FileServer(http.Dir(dir)))
	host.Config.ErrorLog = log.New(io.Discard, "", 0)
	host.StartTLS()
	t.Cleanup(host.Close)
	_, port, _ = net.SplitHostPort(host.Listener.Addr().String())
	return port
}

// Programs that people have take the way of a tunnel as they are. Their image is made of
// Debian's packages, so this isn't part of the short form.
func TestCurlAndGitReachTheHostsOfTheirUnit(t *testing.T) {
	if os.Getenv("AOD_DEBIAN") == "" {
		t.Skip("packages of Debian are no part of the short form: AOD_DEBIAN=1")
	}
	port := repository(t)
	config := filepath.Join(t.TempDir(), "aod.yaml")
	authority := "good.example:" + port
	write(t, "build_network: default\npolicy: {egress: ["+authority+"]}\negress_private: [good.example=127.0.0.1]\n", config)
	s := newServer(t, "--config", config)
	write(t, "FROM aod/base\nUSER root\nRUN apt-get update -qq && apt-get install -qq --no-install-recommends curl git >/dev/null\nUSER 65532:65532\n", s.units, "fetcher", "Dockerfile")
	command, _ := json.Marshal([]string{"bash", "-c", fetching, "fetcher", port})
	write(t, fmt.Sprintf("name: fetcher\nkind: agent\negress: [%s]\nagent: {command: %s, env: {GIT_SSL_NO_VERIFY: '1'}}\n", authority, command), s.units, "fetcher", "agent.yaml")
	s.start()
	record, err := s.submit(t.Context(), client.Submission{Unit: "fetcher", Input: json.RawMessage(`{"message": "go"}`)})
	if err != nil {
		t.Fatal(err)
	}
	for range s.client.Runs.Events(t.Context(), record.ID, 0) { // packages take their time
	}
	record = s.await(record.ID)
	s.removeLater(record.Image.Ref)
	var output struct{ Text string }
	if err := json.Unmarshal(record.Output, &output); err != nil || record.Outcome != api.Success {
		t.Fatalf("%v %+v", err, record.Error)
	}
	for _, want := range []string{"a page\n", "read me\n", "response 403", "curl: 56", "git: 128"} {
		if !strings.Contains(output.Text, want) {
			t.Errorf("nothing like %q in:\n%s", want, output.Text)
		}
	}
	rows := map[string]api.EgressRow{}
	for _, row := range record.Egress {
		rows[row.Host] = row
	}
	if rows["good.example"].Tunnels < 2 || rows["evil.example"].Refused != 2 || rows["evil.example"].Tunnels != 0 {
		t.Errorf("%+v", record.Egress)
	}
}
