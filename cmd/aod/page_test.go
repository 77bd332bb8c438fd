package main

import (
	"net/http"
	"net/http/cookiejar"
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
