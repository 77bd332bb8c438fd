//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// A worker whose disk is full takes nothing new, and loses nothing of what it has.
func TestTheDiskOfAWorkerIsFull(t *testing.T) {
	f := newFleet(t, "1m")
	d := newDisk(t)
	f.workerIn(d.at, "big", 2, "--min-free-disk", "8MiB")
	going := f.job(jobOrders{Mark: "going", Hold: true, Lines: 20, Bytes: 1 << 16})
	f.awaitBegun("going")
	d.fill()
	f.letGo("going")
	late := f.job(jobOrders{Mark: "late"})
	testkit.Eventually(t, "it takes nothing new", func() bool {
		r, err := f.client.Runs.Get(t.Context(), late)
		return err == nil && r.Waiting != nil && r.Waiting.Reason == "machine"
	})
	if said, _ := f.command("worker", "ls", "--server", f.client.Server()); !strings.Contains(said, "connected, disk full") {
		t.Error(said)
	}
	d.empty()
	f.succeeded(late)
	if r := f.await(going); r.Outcome != api.Success { // by another attempt, where the result had no room
		t.Errorf("%s, %+v", r.Outcome, r.Error)
	}
}
