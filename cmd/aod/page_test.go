package main

import (
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What `aod ui` prints signs a browser in, once.
func TestTheAddressOfThePageSignsInOnce(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.start()
	code, stdout, stderr := command(t, t.Context(), "ui", "--print", "--server", s.client.Server(), "--data", s.data)
	address := strings.TrimSpace(stdout)
	if code != 0 || !strings.HasPrefix(address, s.client.Server()+"/ui/login?code=") {
		t.Fatalf("code %d, %q, %q", code, stdout, stderr)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		client http.Client
		path   string
		status int
	}{
		{http.Client{Jar: jar}, "/ui/runs", http.StatusOK},
		{http.Client{}, "/ui/login", http.StatusUnauthorized},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.status || answer.Request.URL.Path != c.path {
			t.Errorf("it leads to %s: %s", answer.Request.URL.Path, answer.Status)
		}
	}
}

// Built with the tag no_ui the program has nothing of the page.
func TestAProgramCanBeBuiltWithoutThePage(t *testing.T) {
	t.Parallel()
	const page = "github.com/agent-on-demand/aod/orchestrator/web"
	for tags, with := range map[string]bool{"": true, "no_ui": false} {
		// To export is to compile: once more as the program is built, and without linking.
		list := exec.CommandContext(t.Context(), "go", "list", "-export", "-trimpath", "-deps", "-tags", tags, ".")
		list.Env = append(os.Environ(), "CGO_ENABLED=0")
		if all, err := list.Output(); err != nil || strings.Contains(string(all), page) != with {
			t.Errorf("tags %q: %v, %s", tags, err, all)
		}
	}
}
