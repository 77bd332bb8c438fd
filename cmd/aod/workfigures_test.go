package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// browser is one that is signed in to the server's page: it reads the page at a path.
func (s *server) browser() func(path string) string {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	read := func(address string) string {
		s.t.Helper()
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: %s, %v", address, answer.Status, err)
		}
		return string(body)
	}
	said, _ := s.command("ui", "--print", "--server", s.client.Server())
	read(strings.TrimSpace(said))
	return func(path string) string { return read(s.client.Server() + path) }
}

// Metrics, the page and a run's record for people tell of workers, and of what they lose.
func TestWorkersAreSeen(t *testing.T) {
	f := newFleet(t, "1s")
	gone := f.worker("gone", 2)
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	contains(t, f.metrics(), `aod_workers{state="connected"} 1`, `aod_worker_slots{worker="gone"} 2`, `aod_worker_running{worker="gone"} 1`, "aod_worker_leases_lost_total 0")
	page := f.browser()
	contains(t, page("/ui/operations"), "Connected", "1 of 2", "workers/gone/drain")
	testkit.Eventually(t, "the run's page names its worker", func() bool {
		return regexp.MustCompile(`<dt>Worker</dt><dd[^>]*>gone<`).MatchString(page("/ui/runs/" + id))
	})
	if said, code := f.command("runs", id, "--server", f.client.Server()); code != 0 || !regexp.MustCompile(`(?m)^worker +gone$`).MatchString(said) {
		t.Errorf("code %d: %s", code, said)
	}
	gone.road.is(-1)
	f.worker("other", 1)
	f.letGo("a")
	if r := f.await(id); r.Outcome != api.Success || r.Worker != "other" {
		t.Errorf("%s at %q", r.Outcome, r.Worker)
	}
	contains(t, f.metrics(), `aod_workers{state="connected"} 1`, `aod_workers{state="lost"} 1`, `aod_worker_slots{worker="other"} 1`, "aod_worker_leases_lost_total 1")
	contains(t, page("/ui/operations"), "Lost", "workers/other/drain")
	gone.road.is(0)
	gone.ready()
}
