package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestBuildsLeaveOtherUnitsTheirSlots(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "2", "--pool", "0", "--build-timeout", "10m")
	s.addWorker("worker", "")
	s.start()
	s.await(s.mustSubmit("worker", work{}))
	var slow []string
	for n := range 4 {
		name := fmt.Sprintf("slow%d", n)
		s.addWorker(name, unique()+"RUN sleep 900\n")
		slow = append(slow, s.mustSubmit(name, work{}))
	}
	for _, id := range slow {
		s.until(id, "waits for its image", func(r api.Record) bool { return r.State == api.Starting })
	}
	testkit.Eventually(t, "the server is ready", func() bool { return s.status("/readyz") == http.StatusOK })
	for range 3 {
		if record := s.await(s.mustSubmit("worker", work{})); record.Outcome != api.Success {
			t.Errorf("another unit: %s, %+v", record.Outcome, record.Error)
		}
	}
	for _, id := range slow {
		if _, err := s.client.Cancel(t.Context(), id, ""); err != nil {
			t.Error(err)
		}
		if record := s.await(id); record.Outcome != api.WasCancelled {
			t.Errorf("%s: %+v", record.Outcome, record.Error)
		}
	}
}

func TestABuildThatWantsTheNetwork(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--pool", "0")
	s.addWorker("fetcher", unique()+"RUN getent hosts packages.invalid || { echo Temporary failure in name resolution; exit 1; }\n")
	s.start()
	record := s.await(s.mustSubmit("fetcher", work{}))
	if e := record.Error; e == nil || e.Kind != "build_failed" || !strings.Contains(e.Hint, "build_network: default") || !strings.Contains(e.Hint, "no network") {
		t.Errorf("%s: %+v", record.Outcome, e)
	}
}

func TestABuildHasSoMuchTime(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--pool", "0", "--build-timeout", "1s")
	s.addWorker("slow", unique()+"RUN sleep 900\n")
	s.start()
	record := s.await(s.mustSubmit("slow", work{}))
	if e := record.Error; e == nil || e.Kind != "build_timeout" || record.Retries != 0 || !strings.Contains(e.Hint, "build_timeout") {
		t.Errorf("%s: %+v", record.Outcome, e)
	}
}

func TestPruneImages(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--pool", "0")
	s.addWorker("worker", unique())
	s.start()
	first := s.await(s.mustSubmit("worker", work{}))
	if got := s.aod("prune", "--images", "--dry-run"); got != "would remove 0 images\n" {
		t.Errorf("with the image in use: %q", got)
	}
	write(t, "a newer version", filepath.Join(s.units, "worker"), "more.txt")
	second := s.await(s.mustSubmit("worker", work{}))
	s.images = append(s.images, first.Image.Ref, second.Image.Ref)
	if first.Image.Ref == second.Image.Ref {
		t.Fatal("there is one image")
	}
	if got := s.aod("prune", "--images"); got != "removed 0 images\n" {
		t.Errorf("an image of a moment ago: %q", got)
	}
	for _, ref := range s.images {
		if _, err := s.engine.Image(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
}
