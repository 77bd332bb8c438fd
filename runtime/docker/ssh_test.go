package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// sshTo puts a program ssh into the way that does what it is asked for on this machine, and
// says what it was called with.
func sshTo(t *testing.T, script string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	program := "#!/bin/sh\necho \"$@\" >> " + calls + "\nunset DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH\nfor last; do :; done\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return calls
}

func TestAnEngineBehindSSH(t *testing.T) {
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("the command docker isn't here, which ssh runs over there")
	}
	here := newEngine(t, "")
	want, err := here.Probe(t.Context())
	if err != nil {
		t.Skipf("no Docker engine to test with: %v", err)
	}
	calls := sshTo(t, `exec sh -c "exec $last"`)
	t.Setenv("DOCKER_TLS_VERIFY", "1") // is for TCP
	e := newEngine(t, "ssh://me@far.example")
	got, err := e.Probe(t.Context())
	if err != nil || got.Version != want.Version || got.Local || !e.Remote() {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := e.Attach(t.Context(), "nothing"); !fault.Is(err, fault.NotFound) { // not by way of the client
		t.Errorf("Attach: %v", err)
	}
	asked, err := os.ReadFile(calls)
	if err != nil || !strings.Contains(string(asked), "-l me") || !strings.Contains(string(asked), "far.example docker system dial-stdio") {
		t.Errorf("ssh was called with %q, %v", asked, err)
	}
}

func TestSSHThatFailsIsAnAbsentEngine(t *testing.T) {
	sshTo(t, `echo "secret words of the other side" >&2; exit 255`)
	_, err := newEngine(t, "ssh://far.example").Probe(t.Context())
	if public := fault.Public(err); public.Kind != fault.Unavailable || strings.Contains(public.Msg, "secret") || public.Hint == "" {
		t.Errorf("%v; hint %q", public, public.Hint)
	}
}

func TestHostsThatSSHCantReach(t *testing.T) {
	for _, host := range []string{"ssh://", "ssh://me:password@host"} {
		if _, err := New(Options{Host: host}); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", host, err)
		}
	}
}
