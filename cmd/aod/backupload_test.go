package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const (
	flockRuns = 50 // of a flow, with that of the flow itself

	countFlow = `{nodes: {one: {set: {n: 1}}}, output: {n: "${{ state.n }}"}}` // needs no sandbox

	loadPause = 200 * time.Millisecond // from one run to the next while the backup is made
)

// A backup that is made while five runs a second are accepted has whatever was told before:
// elsewhere all of it is told in the same words, and what wasn't over goes on.
func TestABackupUnderLoadHasAllThatWasTold(t *testing.T) {
	t.Parallel()
	runs := long(t, "AOD_RUNS") // that the server has behind it
	s := newWellUsed(t)
	s.makeRuns(runs)
	before := s.tell(s.finished())
	question := s.question(s.call("asks", "{}"))
	s.submitDocument(3)
	waits := s.mustSubmit("worker", work{Mark: 100, Ticks: 20})

	stop := s.load()
	file := filepath.Join(t.TempDir(), "aod.tar.gz")
	began := time.Now()
	s.mustDo("backup", file)
	took := time.Since(began)
	accepted := stop()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	t.Logf("%d runs were backed up in %v to %d bytes, and %d accepted meanwhile", len(before.Records), took.Round(time.Millisecond), info.Size(), accepted)

	after := s.restoredFrom(file)
	told := after.tell(before.ids())
	if diff := cmp.Diff(before, told); diff != "" {
		t.Errorf("elsewhere it isn't what it was: %s", diff)
	}
	if diff := cmp.Diff(question, after.question(question.Run)); diff != "" {
		t.Errorf("the question isn't what it was: %s", diff)
	}
	after.approve(question)
	if record := after.await(question.Run); record.Outcome != api.Success {
		t.Errorf("what asked comes to %s, %+v", record.Outcome, record.Error)
	}
	after.rest()
	for id, record := range after.records() {
		if record.Outcome != api.Success && id != waits && record.Retries == 0 && record.Error.Category != api.CategoryTransient {
			t.Errorf("run %s comes to %s, %+v", id, record.Outcome, record.Error)
		}
	}
	after.goesOn(before)
	s.approve(question) // the answer is the other server's alone
	s.rest()
}

// goesOn holds that what was uploaded can be run, and that keys of before are known.
func (s *wellUsed) goesOn(before account) {
	s.t.Helper()
	if record := s.await(s.mustSubmit("uploaded", work{Mark: 1})); record.Outcome != api.Success {
		s.t.Errorf("the uploaded unit: %+v", record.Error)
	}
	again, err := s.submit(s.t.Context(), s.note(0))
	if _, known := before.Records[again.ID]; err != nil || !known {
		s.t.Errorf("what was submitted before by its key makes run %s, %v", again.ID, err)
	}
}

// wellUsed is a server whose runs are many: those of "note", "count" and "flock" need no sandbox.
type wellUsed struct {
	*server
	docs string // a directory of files that runs are given
}

func newWellUsed(t *testing.T) *wellUsed {
	s := &wellUsed{newServer(t, "--concurrency", "8", "--queue", "100000"), t.TempDir()}
	s.addWorker("worker", "")
	s.addFlow("count", "", countFlow)
	s.addFlow("note", "", countFlow)
	write(t, `{"input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}}, "output": {"type": "object"}}`,
		s.units, "note", "schema.json")
	s.addFlow("flock", "", fmt.Sprintf(`nodes: {each: {map: "${{ 1..%d }}", run: count, collect: "${{ out.n }}"}}`, flockRuns-1))
	s.addFlow("asks", "", `nodes: {ask: {ask: "Go on?", show: {mark: 1}, next: {approve: end, reject: end}}}`)
	s.start()
	uploaded := filepath.Join(s.docs, "uploaded")
	writeWorker(t, uploaded, "uploaded", "")
	if err := (&killing{server: s.server}).put(uploaded); err != nil {
		t.Fatal(err)
	}
	return s
}

// makeRuns has n runs behind the server, and a few in sandboxes, and schedules.
func (s *wellUsed) makeRuns(n int) {
	s.t.Helper()
	began := time.Now()
	for range n / 2 / flockRuns {
		s.call("flock", "{}")
	}
	var all errgroup.Group
	all.SetLimit(8)
	for mark := range n - n/2 {
		all.Go(func() error {
			_, err := s.submit(s.t.Context(), s.note(mark))
			return err
		})
	}
	for mark := range 3 {
		s.submitDocument(mark)
	}
	s.makeSchedules()
	if err := all.Wait(); err != nil {
		s.t.Error(err)
	}
	s.rest()
	s.t.Logf("%d runs in %v", n, time.Since(began).Round(time.Millisecond))
}

// note is a run that is given a file of its own, every fifth time.
func (s *wellUsed) note(mark int) client.Submission {
	sub := client.Submission{Unit: "note", Key: fmt.Sprintf("note-%d", mark), Metadata: map[string]string{"mark": strconv.Itoa(mark)}}
	if mark%5 == 0 {
		doc := filepath.Join(s.docs, strconv.Itoa(mark))
		write(s.t, fmt.Sprintf("what is noted as %d\n", mark), doc)
		sub.Files = []client.InputFile{{Field: "doc", Path: doc}}
	}
	return sub
}

// submitDocument has a run of the worker accepted, which copies a file.
func (s *wellUsed) submitDocument(mark int) {
	doc := filepath.Join(s.docs, "document")
	if mark == 0 {
		write(s.t, strings.Repeat("one line of many\n", 10_000), doc)
	}
	sub := client.Submission{Unit: "worker", Input: work{Mark: mark, Ticks: 1}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}}}
	if _, err := s.submit(s.t.Context(), sub); err != nil {
		s.t.Error(err)
	}
}

// makeSchedules makes one that is over, one that was paused after a run by hand, with its files,
// and one that has its time to come.
func (s *wellUsed) makeSchedules() {
	s.t.Helper()
	doc := filepath.Join(s.docs, "scheduled")
	write(s.t, "what a schedule gives\n", doc)
	for name, spec := range map[string]api.ScheduleSpec{
		"paused": {Unit: "note", Every: "24h", Note: "of the owner"},
		"yearly": {Unit: "count", Cron: "@yearly", Timezone: "Europe/Berlin"},
	} {
		var files []client.InputFile
		if spec.Unit == "note" {
			files = []client.InputFile{{Field: "doc", Path: doc}}
		}
		if _, _, err := s.client.Schedules.Put(s.t.Context(), name, spec, files); err != nil {
			s.t.Fatal(err)
		}
	}
	s.putSoon("once", api.ScheduleSpec{Unit: "count"}, 5*time.Second)
	if _, err := s.client.Schedules.Run(s.t.Context(), "paused"); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.Schedules.Pause(s.t.Context(), "paused"); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, "the schedule is over", func() bool {
		once, err := s.client.Schedules.Get(s.t.Context(), "once")
		return err == nil && once.State == api.ScheduleEnded
	})
}

// putSoon makes a schedule with one time, after a while. On a busy machine that may be past when it is
// asked for: then it tries with a later one.
func (s *server) putSoon(name string, spec api.ScheduleSpec, after time.Duration) {
	s.t.Helper()
	for {
		at := time.Now().Add(after).UTC()
		spec.At = at.Format(time.RFC3339Nano)
		_, _, err := s.client.Schedules.Put(s.t.Context(), name, spec, nil)
		if err == nil {
			return
		}
		if !fault.Is(err, fault.Input) || time.Now().Before(at) {
			s.t.Fatal(err)
		}
	}
}

// load has five runs a second accepted until it is stopped, and says then how many they were.
func (s *wellUsed) load() (stop func() int) {
	ended, pause := make(chan int), make(chan struct{})
	go func() {
		beat := time.NewTicker(loadPause)
		defer beat.Stop()
		var accepted sync.WaitGroup
		for n := 1; ; n++ {
			accepted.Go(func() { s.submitDocument(n) })
			select {
			case <-beat.C:
			case <-pause:
				accepted.Wait()
				ended <- n
				return
			}
		}
	}()
	return func() int {
		close(pause)
		return <-ended
	}
}

// rest waits until no run goes on.
func (s *server) rest() {
	s.t.Helper()
	for left := len(s.active()); left > 0; left = len(s.active()) { // as long as there is progress
		testkit.Eventually(s.t, fmt.Sprintf("fewer than %d runs go on", left), func() bool { return len(s.active()) < left })
	}
}

// restoredFrom is a server elsewhere, over what a backup has.
func (s *wellUsed) restoredFrom(file string) *wellUsed {
	s.t.Helper()
	after := newServer(s.t, s.flags...)
	after.units, after.env = s.units, s.env
	if err := os.RemoveAll(after.home()); err != nil {
		s.t.Fatal(err)
	}
	began := time.Now()
	after.mustDo("restore", file)
	s.t.Logf("it was restored in %v", time.Since(began).Round(time.Millisecond))
	write(s.t, after.token, after.home(), "token")
	after.start()
	return &wellUsed{after, s.docs}
}
