package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// beBusy has a server have two runs that go on until they are let go, and one that waits for them.
func (s *server) beBusy() (ids []string) {
	s.t.Helper()
	s.flags = append(s.flags, "--concurrency", "2")
	s.addWorker("worker", "")
	s.start()
	for _, w := range []work{{Ticks: 1, Hold: 1}, {Ticks: 1, Hold: 1}, {Ticks: 10}} {
		ids = append(ids, s.mustSubmit("worker", w))
	}
	for _, id := range ids[:2] {
		s.awaitLine(id, "tick 1")
	}
	return ids
}

// allWell wants runs to come to their end by themselves, in one attempt.
func (s *server) allWell(ids []string) {
	s.t.Helper()
	for _, id := range ids {
		record := s.await(id)
		starts, err := s.startsOf(id)
		if record.Outcome != api.Success || record.Retries != 0 || starts != 1 || err != nil {
			s.t.Errorf("run %s: %s after %d retries and %d starts: %+v %v", id, record.Outcome, record.Retries, starts, record.Error, err)
		}
	}
}

func TestShutdown(t *testing.T) {
	t.Run("leaves to the next start what doesn't end in its grace", func(t *testing.T) {
		t.Parallel()
		s := newInside(t, "--grace", "300ms")
		ids := s.beBusy()
		s.signal(syscall.SIGTERM)
		if code := s.exitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.checkLetGo()
		if containers := s.containers(); len(containers) != 2 {
			t.Errorf("there are %d containers, not those of the 2 runs that go on", len(containers))
		}
		s.start()
		s.letGo(ids[:2]...)
		s.allWell(ids)
	})
	t.Run("waits for what ends in its grace", func(t *testing.T) {
		t.Parallel()
		s := newInside(t, "--grace", "1m") // more than any of them takes
		ids := s.beBusy()
		s.signal(syscall.SIGTERM)
		testkit.Eventually(t, "it is heard", func() bool { return s.status("/readyz") != http.StatusOK })
		s.letGo(ids[:2]...)
		if code := s.exitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if containers := s.containers(); len(containers) != 0 {
			t.Errorf("%d containers go on", len(containers))
		}
		s.start()
		for _, id := range ids[:2] { // they were not adopted: they had ended
			if record, err := s.client.Runs.Get(t.Context(), id); err != nil || !over(record) {
				t.Errorf("run %s: %+v %v", id, record, err)
			}
		}
		s.allWell(ids)
	})
	t.Run("waits for all with --drain, and takes nothing new", func(t *testing.T) {
		t.Parallel()
		s := newInside(t, "--drain", "--grace", "1ms")
		ids := s.beBusy()
		s.signal(syscall.SIGTERM)
		testkit.Eventually(t, "the server isn't ready any more", func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
		if _, err := s.client.Runs.Submit(t.Context(), client.Submission{Unit: "worker"}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a submission: %v", err)
		}
		s.letGo(ids[:2]...)
		if code := s.exitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.start()
		for _, id := range ids {
			if record, err := s.client.Runs.Get(t.Context(), id); err != nil || !over(record) {
				t.Errorf("run %s: %+v %v", id, record, err)
			}
		}
		s.allWell(ids)
	})
	t.Run("ends at once at a second SIGTERM, and loses nothing", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, "--drain")
		ids := s.beBusy()
		s.signal(syscall.SIGTERM)
		testkit.Eventually(t, "the first one is heard", func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
		s.signal(syscall.SIGTERM)
		s.exitCode()
		if status := s.process.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("it ended by itself: %v", s.process.ProcessState)
		}
		if containers := s.containers(); len(containers) == 0 {
			t.Error("it waited for its runs")
		}
		s.start()
		s.letGo(ids[:2]...)
		s.allWell(ids)
	})
	t.Run("answers those who wait", func(t *testing.T) {
		t.Parallel()
		s := newInside(t, "--grace", "300ms")
		ids := s.beBusy()
		answers := make(chan string, len(ids))
		for range ids {
			go func() { answers <- s.submitAndWait() }()
		}
		testkit.Eventually(t, "all are waiting", func() bool { return len(s.active()) == 2*len(ids) })
		s.signal(syscall.SIGTERM)
		for range ids {
			if answer := <-answers; answer != "202 idle" {
				t.Errorf("one who waited got %q", answer)
			}
		}
		if code := s.exitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.letGo(ids[:2]...)
	})
}

// submitAndWait submits a run and waits for its end; it returns the answer's status and
// the run's state.
func (s *server) submitAndWait() string {
	body := strings.NewReader(`{"unit":"worker","input":{"ticks":10}}`)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url()+"/v1/runs?wait=60s", body)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	var record api.Record
	if err := json.NewDecoder(response.Body).Decode(&record); err != nil {
		return err.Error()
	}
	return response.Status[:4] + string(record.State)
}

func TestServeRefusesToStart(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.start()
	refusal := func(home string, more ...string) (code int, said string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		args := append([]string{"serve", "--data", home, "--listen", "127.0.0.1:0"}, more...)
		second := exec.CommandContext(ctx, s.program, args...)
		raw, err := second.CombinedOutput()
		if err == nil {
			t.Fatal("it has started")
		}
		return second.ProcessState.ExitCode(), string(raw)
	}
	t.Run("a second server over the same directory", func(t *testing.T) {
		code, said := refusal(s.data)
		if code != 2 {
			t.Errorf("exit code %d", code)
		}
		contains(t, said, "another server runs over", "hint: stop it, or give this one a data directory of its own")
		testkit.Eventually(t, "the first one still answers", func() bool { return s.status("/readyz") == http.StatusOK })
		if raw, err := os.ReadFile(filepath.Join(s.home(), "address")); err != nil || string(raw) != s.url()+"\n" {
			t.Errorf("the word of the first one's address is %q, %v", raw, err)
		}
	})
	t.Run("at an address that is taken", func(t *testing.T) {
		code, said := refusal(t.TempDir(), "--listen", s.address)
		if code != 125 {
			t.Errorf("exit code %d", code)
		}
		contains(t, said, "nothing can listen on "+s.address, "hint: is another server there?")
	})
	t.Run("with a token that others can read", func(t *testing.T) {
		home := t.TempDir()
		token := filepath.Join(home, "server", "token")
		write(t, s.token, token)
		if err := os.Chmod(token, 0o644); err != nil {
			t.Fatal(err)
		}
		code, said := refusal(home)
		if code != 2 {
			t.Errorf("exit code %d", code)
		}
		contains(t, said, "others can read the token", "hint: chmod 600 "+token)
	})
	t.Run("with a token that can be guessed", func(t *testing.T) {
		home := t.TempDir()
		write(t, "secret\n", home, "server", "token")
		code, said := refusal(home)
		if code != 2 {
			t.Errorf("exit code %d", code)
		}
		contains(t, said, "fewer than 32 characters", "hint: remove the file")
	})
}

func TestServeWantsItsToken(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.start()
	for name, token := range map[string]string{"none": "", "another one": strings.Repeat("other-", 8), "a part of it": s.token[:32]} {
		stranger, err := client.New(client.Options{Server: s.url(), Token: token})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stranger.Units.List(t.Context()); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if strings.Contains(s.log(), s.token[:20]) {
		t.Error("the token is in the log")
	}
}
