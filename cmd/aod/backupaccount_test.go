package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// account is what a server tells of runs that are over and of its schedules, and which files it
// keeps for them.
type account struct {
	Records   map[string]api.Record
	Steps     map[string][]api.Step
	Schedules map[string]api.Schedule
	Histories map[string][]api.Occurrence
	Files     map[string]string // digests, by their names in the home
}

func (a account) ids() []string { return slices.Collect(maps.Keys(a.Records)) }

// finished are the runs that are over.
func (s *server) finished() (ids []string) {
	s.t.Helper()
	for id, record := range s.records() {
		if over(record) {
			ids = append(ids, id)
		}
	}
	return ids
}

// tell asks a server for all that is known of some runs.
func (s *server) tell(ids []string) account {
	s.t.Helper()
	all := account{
		Records: map[string]api.Record{}, Steps: map[string][]api.Step{}, Files: map[string]string{},
		Schedules: map[string]api.Schedule{}, Histories: map[string][]api.Occurrence{},
	}
	for _, id := range ids {
		record, err := s.client.Runs.Get(s.t.Context(), id)
		if err != nil {
			s.t.Fatalf("run %s: %v", id, err)
		}
		all.Records[id] = record
		if record.Kind == "flow" {
			all.Steps[id] = s.steps(id)
		}
		s.digest(filepath.Join(layout.Runs, id), all.Files)
	}
	for schedule, err := range s.client.Schedules.List(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		all.Schedules[schedule.Name] = schedule
		for occurrence, err := range s.client.Schedules.Occurrences(s.t.Context(), schedule.Name) {
			if err != nil {
				s.t.Fatal(err)
			}
			all.Histories[schedule.Name] = append(all.Histories[schedule.Name], occurrence)
		}
	}
	s.digest(layout.Schedules, all.Files)
	return all
}

func (s *server) steps(id string) (steps []api.Step) {
	s.t.Helper()
	for step, err := range s.client.Flows.Steps(s.t.Context(), id) {
		if err != nil {
			s.t.Fatal(err)
		}
		steps = append(steps, step)
	}
	return steps
}

// digest adds the files of a directory of the home.
func (s *server) digest(dir string, files map[string]string) {
	s.t.Helper()
	home := os.DirFS(s.home())
	err := fs.WalkDir(home, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(home, name)
		sum := sha256.Sum256(raw)
		files[name] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has none
		s.t.Fatal(err)
	}
}
