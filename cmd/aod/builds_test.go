package main

import (
	"path/filepath"
	"strings"
	"testing"
)

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

func TestPruneImages(t *testing.T) {
	t.Parallel()
	s := newInside(t, "--pool", "0")
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
