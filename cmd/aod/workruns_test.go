package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
)

func TestRunsGoOnAtWorkersWithAllThatTheyHave(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("big", 2)
	doc := filepath.Join(t.TempDir(), "doc.txt")
	write(t, "what is in the document\n", doc)
	id := f.job(jobOrders{Mark: "a", Lines: 3000, Doc: ""}, client.InputFile{Field: "doc", Path: doc})
	r := f.await(id)
	f.succeeded(id)
	if r.Worker != "big" || r.Image.Ref == "" || r.Container == nil || r.StartedAt == nil || r.Timings.Total <= 0 {
		t.Errorf("the record lacks what the worker knows: %+v", r)
	}
	if len(r.Files) != 1 || r.Files[0].Name != "copy" || r.Files[0].Pointer == nil {
		t.Fatalf("files %+v", r.Files)
	}
	if content := f.fileOf(r); string(content) != "what is in the document\n" {
		t.Errorf("the file that came back has %q", content)
	}
	line := 0
	for entry, err := range f.client.Runs.Log(t.Context(), id, api.LogFilter{}) {
		if line++; err != nil || entry.Text != fmt.Sprintf("line %d", line) {
			t.Fatalf("line %d is %q (%v)", line, entry.Text, err)
		}
	}
	if line != 3000 {
		t.Errorf("%d lines of log", line)
	}
}

// JSON has more than one way to write a text: what a program gets and gives has the same bytes as at the server.
func TestARunAtAWorkerHasTheBytesOfItsInputAndOutput(t *testing.T) {
	f := fleetOf(t, "1m")
	const text = `{"mark":"<b>&"}`
	input := make(chan string, 1)
	f.addJob("texts", "")
	f.runs("texts", func(_ context.Context, box servicetest.Sandbox) int {
		raw, _ := os.ReadFile(box.Path("/io/input.json"))
		input <- strings.Join(strings.Fields(string(raw)), "")
		_ = os.WriteFile(box.Path("/io/output.json"), []byte(text), 0o600)
		return 0
	})
	f.start()
	f.worker("big", 1)
	record, err := f.submit(t.Context(), client.Submission{Unit: "texts", Input: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if got, out := <-input, f.await(record.ID).Output; got != text || string(out) != text {
		t.Errorf("of %s the program got %s, and the run has %s", text, got, out)
	}
}

func TestCallersAndCalleesAreOnDifferentWorkers(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("one", 1)
	f.worker("two", 1)
	f.succeeded(f.job(jobOrders{Mark: "a", Calls: []string{"b", "c"}}))
	f.succeeded(f.job(jobOrders{Mark: "deep", Deep: 5}))
	seen := map[string]bool{}
	for run, err := range f.client.Runs.List(t.Context(), api.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		r := f.await(run.ID)
		seen[r.Worker] = true
	}
	if !seen["one"] || !seen["two"] || seen[""] {
		t.Errorf("the runs were at %v", seen)
	}
}

// Far more calls than slots, of callers that hold one: each of them has to come to its end. `make partition` makes a
// thousand.
func TestManyHandoffsOverThreeWorkersOfTwoSlots(t *testing.T) {
	f := newFleet(t, "1m")
	for _, name := range []string{"one", "two", "three"} {
		f.worker(name, 2)
	}
	callers := 10
	if os.Getenv("AOD_PARTITIONS") != "" {
		callers = 50
	}
	var ids []string
	for i := range callers {
		todo := jobOrders{Mark: fmt.Sprint("caller ", i)}
		for n := range 20 {
			todo.Calls = append(todo.Calls, fmt.Sprintf("callee %d of %d", n, i))
		}
		ids = append(ids, f.job(todo))
	}
	f.succeeded(ids...)
	if n := f.begun(fmt.Sprint("callee 19 of ", callers-1)); n != 1 {
		t.Errorf("a callee has begun %d times", n)
	}
}

func TestARunAtAWorkerShowsAFileBeforeItsEnd(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("big", 1)
	id := f.job(jobOrders{Mark: "a", Show: "half of it", Hold: true})
	var shown []api.ToldArtifact
	testkit.Eventually(t, "it is shown", func() bool {
		shown = nil
		for one, err := range f.client.Artifacts.List(t.Context(), id) {
			if err == nil {
				shown = append(shown, one)
			}
		}
		return len(shown) > 0
	})
	var content bytes.Buffer
	err := f.client.Artifacts.File(t.Context(), id, shown[0].ID, *shown[0].Parts[0].File, &content)
	if err != nil || content.String() != "half of it" {
		t.Errorf("%q, %v", content.String(), err)
	}
	f.letGo("a")
	f.succeeded(id)
}

// For what a run waits at its worker is seen at the server.
func TestARunAtAWorkerWaitsForItsImage(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 1)
	gate := make(chan struct{})
	w.gate.Store(&gate)
	id := f.job(jobOrders{Mark: "a"})
	f.until(id, "waits for its image", func(r api.Record) bool { return r.Waiting != nil && r.Waiting.Reason == "image" })
	close(gate)
	f.succeeded(id)
}

func TestARunAtAWorkerIsCancelled(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("big", 2)
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	if _, err := f.client.Runs.Cancel(t.Context(), id, "nobody wants it"); err != nil {
		t.Fatal(err)
	}
	r := f.await(id)
	if r.Outcome != api.WasCancelled || !strings.Contains(r.Error.Message, "nobody wants it") {
		t.Errorf("%s, %+v", r.Outcome, r.Error)
	}
}

func TestAFailureAtAWorkerIsTold(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("big", 2)
	r := f.await(f.job(jobOrders{Mark: "a", Exit: 3}))
	if r.Outcome != api.CapsuleError || r.ExitCode == nil || *r.ExitCode != 3 || r.Error.Type != "Planned" ||
		r.Error.Message != "as it was asked for" {
		t.Errorf("%s %v %+v", r.Outcome, r.ExitCode, r.Error)
	}
}

func TestADrainedWorkerTakesNothingNew(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("big", 2)
	going := f.job(jobOrders{Mark: "going", Hold: true})
	f.awaitBegun("going")
	if w, err := f.client.Workers.Drain(t.Context(), "big"); err != nil || !w.Drained || w.Running != 1 {
		t.Fatalf("%+v, %v", w, err)
	}
	late := f.job(jobOrders{Mark: "late"})
	record, err := f.client.Runs.Get(t.Context(), late)
	if err != nil || record.Waiting == nil || record.Waiting.Reason != "machine" {
		t.Errorf("it waits for %+v, %v", record.Waiting, err)
	}
	wanted, err := f.client.Workers.Demand(t.Context())
	if err != nil || len(wanted) != 1 || wanted[0].Waiting != 1 || len(wanted[0].Needs) != 0 || wanted[0].Slots != 0 {
		t.Errorf("%+v, %v", wanted, err)
	}
	f.letGo("going")
	f.succeeded(going)
	if f.begun("late") != 0 {
		t.Error("a drained worker took a run")
	}
	if _, err := f.client.Workers.Undrain(t.Context(), "big"); err != nil {
		t.Fatal(err)
	}
	f.succeeded(late)
}

func TestTheAnswerOfAnAcceptIsLost(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 2)
	var lost atomic.Int32
	w.road.loses(func(r *http.Request) bool { return r.URL.Path == wire.Accept && lost.Add(1) <= 3 })
	f.succeeded(f.job(jobOrders{Mark: "a"}))
	if lost.Load() < 4 {
		t.Errorf("%d answers of accepts", lost.Load())
	}
}

func TestTheAnswerOfAnEndIsLost(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 2)
	var lost atomic.Int32
	w.road.loses(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+wire.End) && lost.Add(1) == 1 })
	f.succeeded(f.job(jobOrders{Mark: "a", Bytes: 1 << 20}))
}

// The server is away while fifty runs go on: their ends wait for it.
func TestTheServerIsAway(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("one", 25)
	f.worker("two", 25)
	var ids, marks []string
	for i := range 50 {
		marks = append(marks, fmt.Sprint("run ", i))
		ids = append(ids, f.job(jobOrders{Mark: marks[i], Hold: true, Lines: 5}))
	}
	f.awaitBegun(marks...)
	f.kill()
	f.letGo(marks...)
	time.Sleep(500 * time.Millisecond) // what is tested is time in which nobody listens
	f.start()
	f.succeeded(ids...)
}

func TestAProxyAnswersInTheServersPlace(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 4)
	going := f.job(jobOrders{Mark: "going", Hold: true})
	f.awaitBegun("going")
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, -1, http.StatusNotFound} {
		w.road.is(status)
		late := f.job(jobOrders{Mark: fmt.Sprint("late ", status)})
		time.Sleep(200 * time.Millisecond) // it is in that state for some time
		w.road.is(0)
		f.succeeded(late)
	}
	f.letGo("going")
	f.succeeded(going)
}

// A worker's process ends amid runs: the next one goes on with them.
func TestAWorkerIsStartedAgain(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 4)
	var ids, marks []string
	for i := range 4 {
		marks = append(marks, fmt.Sprint("run ", i))
		ids = append(ids, f.job(jobOrders{Mark: marks[i], Hold: true, Lines: 10, Bytes: 1 << 16}))
	}
	f.awaitBegun(marks...)
	w.leave()
	f.letGo(marks[:2]...)
	w.begin()
	w.ready()
	f.letGo(marks[2:]...)
	f.succeeded(ids...)
}

// What a lost worker had is tried again elsewhere, unless it may have had an effect. When it comes back, nobody wants
// what it has.
func TestAWorkerIsLost(t *testing.T) {
	f := newFleet(t, "1s")
	gone := f.worker("gone", 2)
	plain, effective := f.job(jobOrders{Mark: "plain", Hold: true}), f.jobOf("effective", jobOrders{Mark: "effective", Hold: true})
	f.awaitBegun("plain", "effective")
	gone.road.is(-1)
	f.worker("other", 2)
	r := f.await(effective)
	if r.Outcome != api.SystemError || r.Error.Kind != api.KindWorkerLost || r.Error.Category != api.CategoryPermanent ||
		!strings.Contains(r.Error.Message, "nobody knows whether it was done") || f.begun("effective") != 1 {
		t.Errorf("begun %d times, %s, %+v", f.begun("effective"), r.Outcome, r.Error)
	}
	testkit.Eventually(t, "it is tried again", func() bool { return f.begun("plain") == 2 })
	gone.road.is(0)
	testkit.Eventually(t, "the worker that is back has removed what it had", func() bool {
		refs, err := gone.engine.ContainersByLabel(context.Background(), nil)
		return err == nil && len(refs) == 0
	})
	f.letGo("plain")
	if r = f.await(plain); r.Outcome != api.Success || r.Worker != "other" || len(r.Attempts) != 1 ||
		r.Attempts[0].Error.Kind != api.KindWorkerLost {
		t.Errorf("%s at %q, %+v", r.Outcome, r.Worker, r.Attempts)
	}
}

// A worker's end that comes after its grace is refused.
func TestAnEndThatComesTooLateIsRefused(t *testing.T) {
	f := newFleet(t, "1s")
	gone := f.worker("gone", 1)
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	gone.road.is(-1)
	f.letGo("a")
	f.worker("other", 1)
	if r := f.await(id); r.Outcome != api.Success || r.Worker != "other" {
		t.Errorf("%s at %q", r.Outcome, r.Worker)
	}
	before, err := f.client.Runs.Get(t.Context(), id)
	gone.road.is(0)
	gone.ready()
	testkit.Eventually(t, "nothing is left there", func() bool {
		leases, _ := filepath.Glob(filepath.Join(gone.data, "worker", "leases", "*"))
		return len(leases) == 0
	})
	after, err2 := f.client.Runs.Get(t.Context(), id)
	if err != nil || err2 != nil || len(before.Transitions) != len(after.Transitions) || after.Worker != "other" {
		t.Errorf("the run has changed: %+v (%v, %v)", after, err, err2)
	}
}

func TestARemovedWorkerIsOffAtOnce(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("gone", 2)
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	if err := f.client.Workers.Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	<-w.ended // by itself, of which the server's log has the time
	if w.code == 0 || !strings.Contains(w.log(), "removed this worker") {
		t.Errorf("it ended with %d:\n%s", w.code, w.log())
	}
	w.awaitEmpty()
	f.worker("other", 1)
	f.letGo("a")
	if r := f.await(id); r.Outcome != api.Success || r.Worker != "other" {
		t.Errorf("%s at %q, %+v", r.Outcome, r.Worker, r.Error)
	}
}

func TestAWorkerIsRemovedWhenItAccepts(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("gone", 2)
	var once atomic.Bool
	w.road.loses(func(r *http.Request) bool {
		if r.URL.Path == wire.Accept && once.CompareAndSwap(false, true) {
			if err := f.client.Workers.Remove(context.Background(), "gone"); err != nil {
				t.Error(err)
			}
			return true
		}
		return false
	})
	id := f.job(jobOrders{Mark: "a"})
	<-w.ended
	f.worker("other", 1)
	if r := f.await(id); r.Outcome != api.Success || r.Worker != "other" || f.begun("a") != 1 {
		t.Errorf("%s at %q, begun %d times, %+v", r.Outcome, r.Worker, f.begun("a"), r.Error)
	}
}

// A large file that is cut at many places comes whole, there and back.
func TestALargeFileIsCutAtManyPlaces(t *testing.T) {
	f := newFleet(t, "1m")
	w := f.worker("big", 1)
	doc, content := filepath.Join(t.TempDir(), "large"), make([]byte, number(t, "AOD_FILE_MIB", 24)<<20)
	_, _ = rand.Read(content) // never fails
	if err := os.WriteFile(doc, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var passed, cuts atomic.Int64
	w.road.mu.Lock()
	w.road.cut = func(path string, b []byte) int {
		if !strings.Contains(path, "/"+wire.Input+"/") && !strings.Contains(path, "/"+wire.Output+"/") {
			return -1
		}
		if passed.Add(int64(len(b)))/(2<<20) > cuts.Load() && cuts.Load() < 20 {
			cuts.Add(1)
			return len(b) / 2
		}
		return -1
	}
	w.road.mu.Unlock()
	id := f.job(jobOrders{Mark: "a"}, client.InputFile{Field: "doc", Path: doc})
	f.succeeded(id)
	if got := f.fileOf(f.await(id)); !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back of %d", len(got), len(content))
	}
	if cuts.Load() < 10 {
		t.Errorf("it was cut %d times", cuts.Load())
	}
}

// A program at a worker reaches hosts by its worker, within what its unit lists, and the record says which.
func TestAProgramAtAWorkerIsRefusedHosts(t *testing.T) {
	f := newFleet(t, "1m")
	f.worker("big", 1)
	f.addJob("reaching", "egress: [allowed.invalid]\n")
	f.runs("reaching", func(ctx context.Context, box servicetest.Sandbox) int {
		_, _ = fmt.Fprintln(box.Stdout, connectStatus(box, "refused.invalid"))
		box.Output(map[string]string{"mark": "reached"})
		return 0
	})
	r := f.await(f.jobOf("reaching", jobOrders{Mark: "reached"}))
	said := ""
	for entry, err := range f.client.Runs.Log(t.Context(), r.ID, api.LogFilter{}) {
		if said += entry.Text; err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(said, "HTTP/1.1 403 ") || !strings.Contains(said, "may not reach refused.invalid") {
		t.Errorf("the proxy says %q", said)
	}
	if len(r.Egress) != 1 || r.Egress[0].Host != "refused.invalid" || r.Egress[0].Refused != 1 || r.Worker != "big" {
		t.Errorf("%s at %q reached %+v", r.Outcome, r.Worker, r.Egress)
	}
}

// connectStatus asks for a tunnel, and returns the first line of the answer.
func connectStatus(box servicetest.Sandbox, host string) string {
	conn, err := net.Dial("unix", box.Path("/run/aod/aod.sock"))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", host, host)
	line, _ := bufio.NewReader(conn).ReadString('\n') // what isn't a status isn't the one that is wanted
	return strings.TrimSpace(line)
}

// A worker's credential opens nothing else, and no key or other worker's byte comes to it.
func TestACredentialOfAWorkerOpensNothingElse(t *testing.T) {
	f := newFleet(t, "1m")
	w, other := f.worker("one", 1), f.worker("two", 1)
	id := f.job(jobOrders{Mark: "a", Hold: true})
	f.awaitBegun("a")
	at := f.until(id, "runs", running).Worker
	if at == "two" {
		w, other = other, w
	}
	lease := w.lease()
	askWith := func(token, method, path, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, f.url()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	ask := func(token, method, path string) int { return askWith(token, method, path, "{}") }
	for _, path := range []string{"/v1/runs", "/v1/units", "/v1/workers", "/v1/runs/" + id, "/metrics", "/v1/tokens"} {
		if status := ask(w.credential(), "GET", path); status != http.StatusForbidden {
			t.Errorf("GET %s with a worker's credential: %d", path, status)
		}
	}
	if status := ask(f.token, "POST", wire.Renew); status != http.StatusForbidden {
		t.Errorf("an administrator as a worker: %d", status)
	}
	if status := ask(w.credential(), "GET", wire.Leases+lease+"/"+wire.Unit); status != http.StatusOK {
		t.Errorf("its own lease %q: %d", lease, status)
	}
	if status := askWith(other.credential(), "POST", wire.Orders, `{"protocol": 99}`); status != http.StatusNotImplemented {
		t.Errorf("a worker that is newer: %d", status)
	}
	if status := ask(other.credential(), "GET", wire.Leases+lease+"/"+wire.Unit); status != http.StatusConflict {
		t.Errorf("another one's lease: %d", status)
	}
	f.letGo("a")
	f.succeeded(id)
}

// A server without containers needs no engine.
func TestAServerWithoutContainersNeedsNoEngine(t *testing.T) {
	f := fleetOf(t, "1m")
	var there atomic.Bool
	f.inside.engine.Hook = func(context.Context, string) error {
		if there.Load() { // for the test, which looks what is left
			return nil
		}
		return runtime.ErrUnreachable
	}
	t.Cleanup(func() { there.Store(true) })
	f.start()
	f.worker("big", 2)
	if code, body := f.answer("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d %s", code, body)
	}
	f.succeeded(f.job(jobOrders{Mark: "a"}))
	if strings.Contains(f.log(), "level=WARN") {
		t.Errorf("the log has %s", f.log())
	}
}
