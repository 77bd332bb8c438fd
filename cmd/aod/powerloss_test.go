package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
)

// disk is a file system of its own. A copy of its backing file, made at some moment, is what a
// disk has after a loss of power at that moment.
type disk struct {
	t     *testing.T
	image string
	at    string // where it is mounted
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, image: filepath.Join(t.TempDir(), "disk"), at: t.TempDir()}
	for _, command := range [][]string{{"truncate", "-s", "128M", d.image}, {"mkfs.ext4", "-q", d.image}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system can be made here: %v, %s", err, out)
		}
	}
	d.mount()
	return d
}

func (d *disk) mount() {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.at).CombinedOutput(); err != nil {
		d.t.Skipf("nothing can be mounted here: %v, %s", err, out)
	}
	d.t.Cleanup(func() { _ = exec.Command("umount", "-l", d.at).Run() }) // it may be gone
}

// losePower returns what the disk has if the power fails now.
func (d *disk) losePower() *disk {
	d.t.Helper()
	after := d.losePowerUnmounted()
	after.mount()
	return after
}

func (d *disk) losePowerUnmounted() *disk {
	d.t.Helper()
	after := &disk{t: d.t, image: filepath.Join(d.t.TempDir(), "disk"), at: d.t.TempDir()}
	if out, err := exec.Command("cp", "--sparse=always", d.image, after.image).CombinedOutput(); err != nil {
		d.t.Fatalf("%v, %s", err, out)
	}
	return after
}

// diskServer is a server whose data directory is a disk.
func diskServer(t *testing.T, d *disk, flags ...string) *server {
	t.Helper()
	s := newServer(t, flags...)
	s.data = d.at
	write(t, s.token, s.home(), "token")
	return s
}

func TestNothingThatWasToldIsUntrueAfterALossOfPower(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_MOMENTS") // at those that matter most
	d := newDisk(t)
	s := diskServer(t, d, "--concurrency", "1", "--min-free-disk", "1MiB")
	s.addWorker("worker", "")
	s.start()
	hold := s.mustSubmit("worker", work{Mark: 1, Ticks: 600})
	s.awaitLine(hold, "tick 1")
	content := strings.Repeat("one line of many\n", 10_000)
	doc := filepath.Join(t.TempDir(), "doc")
	write(t, content, doc)
	record, err := s.submit(t.Context(), client.Submission{
		Unit: "worker", Input: work{Mark: 2}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}},
	})
	if err != nil {
		t.Fatal(err)
	}
	accepted := d.losePower()
	if _, err := s.client.Runs.Cancel(t.Context(), hold, ""); err != nil {
		t.Fatal(err)
	}
	s.await(hold)
	if got := s.until(record.ID, "has its outcome", func(r api.Record) bool { return r.Outcome != "" }); got.Outcome != api.Success {
		t.Fatalf("%+v", got)
	}
	ended := d.losePower()
	uploaded := filepath.Join(t.TempDir(), "uploaded")
	writeWorker(t, uploaded, "uploaded", "")
	if err := (&killing{server: s}).put(uploaded); err != nil {
		t.Fatal(err)
	}
	put := d.losePower()
	s.await(record.ID)
	s.kill()

	t.Run("an accepted run has its input", func(t *testing.T) {
		after := s.on(t, accepted)
		if _, err := after.client.Runs.Cancel(t.Context(), hold, ""); err != nil { // which goes on, too, and may have the slot
			t.Fatal(err)
		}
		got := after.await(record.ID)
		if file, err := after.file(got, "copy"); got.Outcome != api.Success || string(file) != content {
			t.Errorf("the run came to %s, its file has %d bytes of %d, %v: %+v", got.Outcome, len(file), len(content), err, got.Error)
		}
	})
	t.Run("a result has its files", func(t *testing.T) {
		after := s.on(t, ended)
		got := after.await(record.ID)
		if file, err := after.file(got, "copy"); got.Outcome != api.Success || string(file) != content {
			t.Errorf("the file has %d bytes of %d, %v", len(file), len(content), err)
		}
	})
	t.Run("a unit that was uploaded can be run", func(t *testing.T) {
		after := s.on(t, put)
		if got := after.await(after.mustSubmit("uploaded", work{Mark: 3})); got.Outcome != api.Success {
			t.Errorf("%s: %+v", got.Outcome, got.Error)
		}
	})
}

// on returns the server over another disk, as after the loss of power: none of its containers
// runs any more.
func (s *server) on(t *testing.T, d *disk) *server {
	t.Helper()
	for _, ref := range s.containers() {
		if err := s.engine.Remove(t.Context(), ref.ID); err != nil {
			t.Fatal(err)
		}
	}
	after := diskServer(t, d, s.flags...)
	after.units = s.units
	after.start()
	return after
}
