//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
)

// A disk of the data directory that is full for a while costs no run that was accepted, makes
// no result wrong, and is never the unit's fault.
func TestAFullDiskOfTheHostIsNobodysFault(t *testing.T) {
	times, dice := long(t, "AOD_FULL"), dice(t)
	d := newDisk(t)
	s := diskServer(t, d, "--concurrency", "3", "--min-free-disk", "0", "--retries", "1", "--retry-delay", "100ms")
	s.addWorker("worker", "")
	s.start()
	s.await(s.mustSubmit("worker", work{})) // its image is built
	count := map[string]int{}
	for range times {
		s.fillOnce(d, dice, count)
	}
	t.Logf("the disk was full %d times: %v", times, count)
}

// fillOnce has runs accepted, fills the disk at some moment of theirs, and makes room again.
func (s *server) fillOnce(d *disk, dice *rand.Rand, count map[string]int) {
	s.t.Helper()
	doc := filepath.Join(s.t.TempDir(), "doc")
	content := strings.Repeat("one line of many\n", 60_000)
	write(s.t, content, doc)
	accepted := map[string]int{} // their marks
	submit := func(mark int) {
		record, err := s.client.Runs.Submit(s.t.Context(), client.Submission{
			Unit: "worker", Input: work{Mark: mark, Ticks: dice.IntN(4)}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}},
		})
		if err != nil {
			count["refused"]++
			return
		}
		accepted[record.ID] = mark
	}
	for mark := range 3 {
		submit(mark)
	}
	time.Sleep(time.Duration(dice.IntN(900)) * time.Millisecond)
	d.fill()
	submit(3)
	time.Sleep(time.Duration(300+dice.IntN(700)) * time.Millisecond)
	d.empty()
	for id, mark := range accepted {
		record := s.await(id)
		s.judgeFull(record, mark, content)
		count[string(record.Outcome)]++
	}
}

// judgeFull wants a right result, or the word that the host had no room.
func (s *server) judgeFull(record api.Record, mark int, content string) {
	s.t.Helper()
	if record.Outcome == api.SystemError {
		if record.Error.Category != api.CategoryTransient && record.Error.Category != api.CategorySystem {
			s.t.Errorf("the category of a full disk is %s: %+v", record.Error.Category, record.Error)
		}
		return
	}
	if record.Outcome != api.Success {
		s.t.Errorf("run %s: %s %+v", record.ID, record.Outcome, record.Error)
		return
	}
	file, err := s.file(record, "copy")
	if err != nil || string(file) != content || !strings.Contains(string(record.Output), fmt.Sprintf(`"mark":%d`, mark)) {
		s.t.Errorf("run %s: %s, a file with %d bytes of %d, %v", record.ID, record.Output, len(file), len(content), err)
	}
}

// fill leaves not a block of the disk to anybody.
func (d *disk) fill() {
	d.t.Helper()
	out, err := os.Create(filepath.Join(d.at, "filler"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer out.Close()
	for step := int64(64 << 20); step >= 4096; step /= 2 { // what is reserved for root, too
		for {
			info, err := out.Stat()
			if err != nil {
				d.t.Fatal(err)
			}
			if unix.Fallocate(int(out.Fd()), 0, info.Size(), step) != nil {
				break
			}
		}
	}
}

func (d *disk) empty() {
	d.t.Helper()
	if out, err := exec.Command("rm", "-f", filepath.Join(d.at, "filler")).CombinedOutput(); err != nil {
		d.t.Fatalf("%v, %s", err, out)
	}
}
