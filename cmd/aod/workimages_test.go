package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const privateBase = "registry.invalid/private/base:1"

// addJobFrom is addJob of a unit whose build begins upon an image.
func (f *fleet) addJobFrom(name, image, more string) {
	f.addJob(name, "")
	write(f.t, "FROM "+image+"\n"+more+"CMD [\"job\"]\n", f.units, name, "Dockerfile")
}

// gives has the server's engine have an image.
func (f *fleet) gives(ref string) {
	f.inside.engine.AddImage(runtime.Image{ID: "sha256:" + ref, Tags: []string{ref}, OS: "linux", Arch: "amd64", SizeBytes: 1 << 20, Cmd: []string{"bash"}})
}

// has reports whether the worker's engine has an image.
func (w *far) has(ref string) bool {
	_, err := w.engine.Image(w.fleet.t.Context(), ref)
	return err == nil
}

// A machine without the base image of a unit gets it from the server: once for all who want it, also when it breaks off.
func TestABaseImageIsFetchedFromTheServer(t *testing.T) {
	f := newFleet(t, "1m")
	f.addJobFrom("one", privateBase, "")
	f.addJobFrom("two", "scratch AS stage", "FROM "+privateBase+"\nCOPY --from=stage /a /b\n")
	f.gives(privateBase)
	w := f.worker("big", 2)
	w.engine.AddImage(runtime.Image{ID: "sha256:own", Tags: []string{"scratch AS stage"}, OS: "linux", Arch: "amd64"}) // as the engine in memory has it
	var cut atomic.Bool
	w.road.mu.Lock()
	w.road.cut = func(path string, b []byte) int {
		if strings.Contains(path, "/"+wire.Image+"/") && cut.CompareAndSwap(false, true) {
			return len(b) / 2
		}
		return -1
	}
	w.road.mu.Unlock()
	gate := make(chan struct{})
	w.gate.Store(&gate)
	ids := []string{f.jobOf("one", jobOrders{Mark: "a"}), f.jobOf("two", jobOrders{Mark: "b"})}
	for _, id := range ids {
		f.until(id, "waits for its base image", func(r api.Record) bool {
			return r.Waiting != nil && strings.Contains(r.Waiting.Message, "fetched from the server")
		})
	}
	close(gate)
	f.succeeded(ids...)
	if n := w.calls("Load"); n != 2 || !cut.Load() { // the first one broke off
		t.Errorf("the engine took the image %d times, cut %v", n, cut.Load())
	}
	if n := w.calls("Pull"); n != 0 || !w.has(privateBase) {
		t.Errorf("a registry was asked %d times", n)
	}
}

// A worker gets what its lease's unit names, and nothing else of the server's engine.
func TestAWorkerGetsNoOtherImage(t *testing.T) {
	f := newFleet(t, "1m")
	f.addJobFrom("one", privateBase, "")
	f.gives(privateBase)
	f.gives("registry.invalid/secret:1")
	w := f.worker("big", 1)
	id := f.jobOf("one", jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	ask := func(ref string) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", f.url()+wire.Leases+w.lease()+"/"+wire.Image+"/"+ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.credential())
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	for ref, want := range map[string]int{
		privateBase: http.StatusOK, "registry.invalid/secret:1": http.StatusForbidden, dockertest.Image: http.StatusForbidden,
		"sha256:" + privateBase: http.StatusForbidden,
	} {
		if status := ask(ref); status != want {
			t.Errorf("%s: %d, want %d", ref, status, want)
		}
	}
	f.letGo("a")
	f.succeeded(id)
}

// What neither the server nor a registry has is told with what to do.
func TestNobodyHasTheBaseImageOfAWorker(t *testing.T) {
	f := newFleet(t, "1m")
	f.addJobFrom("one", privateBase, "")
	f.worker("big", 1)
	r := f.await(f.jobOf("one", jobOrders{Mark: "a"}))
	if r.Error == nil || !strings.Contains(r.Error.Message, "the server of this worker doesn't give it") ||
		!strings.Contains(r.Error.Hint, "whose workers fetch it") {
		t.Errorf("%+v", r.Error)
	}
}

// The base image of this version is fetched as well: a machine with nothing on it takes the run.
func TestAMachineWithoutAnyImageTakesARun(t *testing.T) {
	f := newFleet(t, "1m")
	f.addJobFrom("one", "aod/base", "")
	f.gives(images.BaseTag())
	w := f.worker("bare", 1)
	for _, ref := range []string{dockertest.Image, "aod/base"} {
		if err := w.engine.RemoveImage(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	f.succeeded(f.jobOf("one", jobOrders{Mark: "a"}))
	if n := w.calls("Load"); n != 1 || !w.has("aod/base:latest") || !w.has(images.BaseTag()) || w.calls("Build") != 1 {
		t.Errorf("%d images came, %d builds", n, w.calls("Build"))
	}
}

// What was fetched is removed when no unit names it any more, and nothing else.
func TestAFetchedImageIsRemoved(t *testing.T) {
	f := newFleet(t, "1m")
	other := "registry.invalid/other:1"
	f.addJobFrom("one", privateBase, "")
	f.addJobFrom("two", other, "")
	f.gives(privateBase)
	w := f.worker("big", 1)
	w.engine.AddImage(runtime.Image{ID: "sha256:person's", Tags: []string{other}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
	f.succeeded(f.jobOf("one", jobOrders{Mark: "a"}), f.jobOf("two", jobOrders{Mark: "b"}))
	w.awaitEmpty()
	w.again()
	testkit.Eventually(t, "it has looked what is in use", func() bool { return strings.Contains(w.log(), "connected") })
	if !w.has(privateBase) {
		t.Error("an image that a unit names is gone")
	}
	for _, name := range []string{"one", "two"} {
		if err := os.RemoveAll(filepath.Join(f.units, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.again()
	testkit.Eventually(t, "the image is gone", func() bool { return !w.has(privateBase) })
	if !w.has(other) || !w.has("aod/base") {
		t.Error("an image is gone that was there before")
	}
}

// A worker's slot is another run's while the image of one is built there, and the one goes on when it has it again.
func TestTheSlotOfAWorkerIsLentWhileAnImageIsBuilt(t *testing.T) {
	f := newFleet(t, "1m")
	f.addJob("slow", "")
	w := f.worker("big", 1)
	f.succeeded(f.job(jobOrders{Mark: "before"}))
	gate := make(chan struct{})
	w.gate.Store(&gate)
	slow := f.jobOf("slow", jobOrders{Mark: "slow"})
	f.until(slow, "waits for its image", func(r api.Record) bool { return r.Waiting != nil && r.Waiting.Reason == "image" })
	f.succeeded(f.job(jobOrders{Mark: "meanwhile"}))
	holds := f.job(jobOrders{Mark: "holds", Hold: true})
	f.awaitBegun("holds")
	close(gate)
	testkit.Eventually(t, "it asks for its slot again", func() bool { return w.asks("/"+wire.Slot) >= 4 })
	if f.begun("slow") > 0 {
		t.Error("it goes on without a slot")
	}
	f.letGo("holds")
	f.succeeded(slow, holds)
}
