package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// answer is the status and the body of a GET.
func (s *server) answer(path string) (int, string) {
	s.t.Helper()
	response, err := s.get(s.t.Context(), path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// damage overwrites the middle of the database, from a page on.
func (s *server) damage(from, pages int64) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.home(), "aod.db"), os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(strings.Repeat("damaged ", int(pages)*512)), from*4096); err != nil {
		s.t.Fatal(err)
	}
}

func TestAServerOverADamagedDatabaseServesWhatCanBeRead(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_ERRORS")
	s := newServer(t)
	s.addWorker("worker", "")
	s.start()
	doc := filepath.Join(t.TempDir(), "doc")
	write(t, "content", doc)
	record, err := s.submit(t.Context(), client.Submission{
		Unit: "worker", Input: work{Mark: 1}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}},
	})
	if err != nil {
		t.Fatal(err)
	}
	done := s.await(record.ID)
	file := filepath.Join(t.TempDir(), "aod.tar.gz")
	s.mustDo("backup", file)
	s.signal(syscall.SIGTERM)
	s.exitCode()
	whole, err := os.ReadFile(filepath.Join(s.home(), "aod.db"))
	if err != nil {
		t.Fatal(err)
	}
	pages := int64(len(whole) / 4096)
	readable := 0
	for page := int64(1); page < pages; page += max(1, pages/5) {
		write(t, string(whole), s.home(), "aod.db")
		s.damage(page, 1)
		s.start()
		if s.isDamaged(file) {
			readable++
		}
		if content, err := os.ReadFile(filepath.Join(s.home(), "runs", record.ID, "output", "copy")); err != nil || string(content) != "content" {
			t.Errorf("the file of a run: %q, %v", content, err)
		}
		if _, err := s.client.Runs.Get(t.Context(), record.ID); err == nil {
			if content, err := s.file(done, "copy"); err != nil || string(content) != "content" {
				t.Errorf("the file of a run that can be read: %q, %v", content, err)
			}
		}
		s.signal(syscall.SIGTERM)
		s.exitCode()
	}
	if readable == 0 {
		t.Error("the run could be read with no page damaged")
	}

	s.mustDo("restore", "--force", file)
	s.start()
	if status := s.status("/readyz"); status != http.StatusOK {
		t.Errorf("after the restore: %d", status)
	}
	if got, err := s.client.Runs.Get(t.Context(), record.ID); err != nil || got.Outcome != api.Success {
		t.Errorf("%+v, %v", got, err)
	}
	if got := s.await(s.mustSubmit("worker", work{Mark: 2})); got.Outcome != api.Success {
		t.Errorf("%+v", got)
	}
}

// isDamaged holds what a server says over a damaged database. It reports whether its first run
// can be read.
func (s *server) isDamaged(backup string) bool {
	s.t.Helper()
	if status, said := s.answer("/healthz"); status != http.StatusOK {
		s.t.Errorf("it isn't alive: %d, %s", status, said)
	}
	if status, said := s.answer("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(said, "damaged") || !strings.Contains(said, "aod restore") {
		s.t.Errorf("readiness: %d, %s", status, said)
	}
	if _, err := s.client.Runs.Submit(s.t.Context(), client.Submission{Unit: "worker", Input: work{Mark: 3}.input()}); !fault.Is(err, fault.Unavailable) {
		s.t.Errorf("a new run: %v", err)
	}
	if _, err := s.client.Prune(s.t.Context(), api.PruneOptions{OlderThan: 1}); !fault.Is(err, fault.Unavailable) {
		s.t.Errorf("what is old: %v", err)
	}
	if status := s.status("/v1/units"); status != http.StatusOK {
		s.t.Errorf("its units: %d", status)
	}
	before, _ := os.ReadFile(backup)
	if said, code := s.command("backup", "--replace", backup); code == 0 {
		s.t.Log("a page without content was damaged: " + said)
	} else if after, _ := os.ReadFile(backup); string(before) != string(after) || !strings.Contains(said, "damaged") {
		s.t.Errorf("a backup of it: %d, %s", code, said)
	}
	listed, _ := s.answer("/v1/runs")
	one := ""
	for run, err := range s.client.Runs.List(s.t.Context(), api.Filter{}) {
		if err == nil {
			one = run.ID
		}
	}
	return listed == http.StatusOK && one != ""
}

func TestADatabaseThatIsDamagedLaterEndsReadiness(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_ERRORS")
	s := newServer(t)
	s.addWorker("worker", "")
	s.start()
	s.await(s.mustSubmit("worker", work{Mark: 1}))
	if status := s.status("/readyz"); status != http.StatusOK {
		t.Fatalf("before: %d", status)
	}
	s.signal(syscall.SIGTERM)
	s.exitCode()
	s.start() // so that nothing is in its memory, and all is in the file
	whole, err := os.ReadFile(filepath.Join(s.home(), "aod.db"))
	if err != nil {
		t.Fatal(err)
	}
	s.damage(1, int64(len(whole)/4096-1))
	testkit.Eventually(t, "it isn't ready", func() bool {
		_, _ = s.answer("/v1/runs?limit=100")
		return s.status("/readyz") == http.StatusServiceUnavailable
	})
	if _, said := s.answer("/readyz"); !strings.Contains(said, "damaged") {
		t.Errorf("it says %s", said)
	}
	s.kill()
	write(t, string(whole), s.home(), "aod.db")
	s.start()
}
