package runtime

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestDisksRefuseWhatWouldFillThem(t *testing.T) {
	dir := t.TempDir()
	free, err := FreeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	tight := NewDisks(1)
	tight.Add(filepath.Join(dir, "missing"))
	if err := tight.Room(math.MaxInt64); err != nil {
		t.Errorf("a disk that can't be looked at: %v", err)
	}
	tight.Add(dir)
	for _, c := range []struct {
		name    string
		disks   *Disks
		need    int64
		refused bool
	}{
		{"none are known", nil, 1 << 40, false},
		{"no bound", NewDisks(0, dir), math.MaxInt64, false},
		{"room enough", NewDisks(free/2, dir), 0, false},
		{"less than the bound is free", NewDisks(2*free, dir), 0, true},
		{"the next one would go past the bound", NewDisks(free/2, dir), free, true},
		{"the second of two disks", tight, 2 * free, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.disks.Room(c.need)
			if fault.Is(err, fault.Unavailable) != c.refused || err != nil && !strings.Contains(fault.Public(err).Hint, "min_free_disk") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheOneThatWroteMostMakesRoom(t *testing.T) {
	dir := t.TempDir()
	free, err := FreeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	much, more := new(sandboxDisk), new(sandboxDisk)
	roomy := NewDisks(free, dir) // more than half of which is left
	if full := roomy.tell(much, math.MaxInt64); full != nil {
		t.Errorf("with room: %v", full)
	}
	d := NewDisks(16*free, dir)
	if full := d.tell(much, free-1); full != nil {
		t.Errorf("who wrote little: %v", full)
	}
	if full := d.tell(more, 3*free); full == nil || full.Written != 3*free || full.Free > 2*free {
		t.Errorf("who wrote most: %v", full)
	}
	if full := d.tell(much, 2*free); full != nil {
		t.Errorf("who wrote less: %v", full)
	}
	d.forget(more)
	if full := d.tell(much, 2*free); full == nil {
		t.Error("nobody else is left")
	}
}

func TestARoomyDiskWasNeverFull(t *testing.T) {
	d := NewDisks(0, t.TempDir())
	began := time.Now()
	if d.FullSince(began) {
		t.Error("it counts as full")
	}
	d.full = time.Now()
	if !d.FullSince(began) || d.FullSince(time.Now().Add(time.Hour)) {
		t.Error("when it was full is lost")
	}
}

// What is deleted while somebody looks counts once.
func TestADeletedFileThatGotANameAgainCountsOnce(t *testing.T) {
	l := newLayout(t)
	write(t, l.path("workspace/x"), strings.Repeat("x", 1<<20))
	info, err := os.Lstat(l.path("workspace/x"))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := (&meter{layout: l, limit: math.MaxInt64}).measure(t.Context())
	used, over := (&meter{layout: l, limit: math.MaxInt64, held: map[inode]int64{fileOf(info.Sys()): blocks(info)}}).measure(t.Context())
	if over != nil || used != before {
		t.Errorf("%d bytes, %v; want %d", used, over, before)
	}
	if _, over := (&meter{layout: l, limit: 1 << 20, held: map[inode]int64{{1, 2}: 1<<20 + 1}}).measure(t.Context()); over == nil {
		t.Error("a deleted file doesn't count")
	}
}

func TestProcessesOfAnotherMachineAreNotLookedAt(t *testing.T) {
	for _, state := range []ContainerState{{}, {PID: os.Getpid()}, {PID: math.MaxInt32}} {
		if seen := findProcesses(state, strings.Repeat("f", 64)); seen != nil {
			t.Errorf("%+v: %+v", state, seen)
		}
	}
}
