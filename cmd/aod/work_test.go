package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/worker"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// jobOrders are the input of a job: what its program does.
type jobOrders struct {
	Mark  string   `json:"mark"`
	MS    int      `json:"ms,omitempty"`   // it takes so long
	Hold  bool     `json:"hold,omitempty"` // it waits until it is let go
	Lines int      `json:"lines,omitempty"`
	Bytes int      `json:"bytes,omitempty"` // of an output file
	Doc   string   `json:"doc,omitempty"`   // an input file, which it copies
	Calls []string `json:"calls,omitempty"` // marks of jobs that it calls, all at once
	Deep  int      `json:"deep,omitempty"`  // how many calls there are below one another
	Holds bool     `json:"holds,omitempty"` // what it calls holds
	Exit  int      `json:"exit,omitempty"`
	Show  string   `json:"show,omitempty"` // what is in a file that it shows before its end
	Env   string   `json:"env,omitempty"`  // a variable whose value it writes into its log
}

const jobSchema = `{
  "input": {"type": "object", "properties": {"mark": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}}, "required": ["mark"]},
  "output": {"type": "object", "properties": {"mark": {"type": "string"}, "file": {"type": "string", "format": "file_path"}}, "required": ["mark"]}
}`

// fleet is a server of this process without containers of its own, with workers of this process, each with an engine in
// memory. Between it and each worker there is a road.
type fleet struct {
	*server
	programs *inside // of the workers' engines
	jobs     jobs
}

// jobs are the programs of all engines.
type jobs struct {
	mu    sync.Mutex
	begun map[string]int
	gates map[string]chan struct{}
}

// newFleet starts a server. Workers that are away for longer than the grace are lost.
func newFleet(t *testing.T, grace string, settings ...string) *fleet {
	t.Helper()
	f := fleetOf(t, grace, settings...)
	f.start()
	return f
}

// fleetOf returns a fleet whose server is to be started.
func fleetOf(t *testing.T, grace string, settings ...string) *fleet {
	t.Helper()
	t.Parallel()
	file := filepath.Join(t.TempDir(), "aod.yaml")
	lines := append([]string{
		"local_sandboxes: false", "worker_grace: " + grace, "queue: 10000", "handoff_calls: 2000", "concurrency: 4",
		"unit: {effective: {policy: {networks: [none, bridge]}}, reaching: {policy: {egress: [allowed.invalid]}}}",
	}, settings...)
	write(t, strings.Join(lines, "\n")+"\n", file)
	f := &fleet{server: newInside(t, "--config", file), jobs: jobs{begun: map[string]int{}, gates: map[string]chan struct{}{}}}
	f.addJob("job", "")
	f.addJob("effective", "network: bridge\n")
	f.programs = f.inside
	return f
}

// addJob gives the server a unit whose program is a job.
func (f *fleet) addJob(name, agent string) {
	dir := filepath.Join(f.units, name)
	write(f.t, "FROM "+dockertest.Image+"\nCMD [\"job\"]\n", dir, "Dockerfile")
	write(f.t, "name: "+name+"\nrecursion: 20\nlimits: {timeout: 10m}\n"+agent, dir, "agent.yaml")
	write(f.t, jobSchema, dir, "schema.json")
	write(f.t, "- {name: job, capsule: job, description: a job, parameters: {type: object}}\n", dir, "tools.yaml")
	f.runs(name, f.jobs.run)
}

// run is the program of a job.
func (j *jobs) run(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	var todo jobOrders
	if box.Input(&todo) != nil {
		return 9
	}
	gate := j.begin(todo.Mark)
	for i := range todo.Lines {
		_, _ = fmt.Fprintf(box.Stdout, "line %d\n", i+1)
	}
	if todo.Show != "" {
		b.writes("shown", []byte(todo.Show))
		b.shows("key", `{"file": "shown"}`)
	}
	for _, variable := range box.Spec.Env {
		if value, is := strings.CutPrefix(variable, todo.Env+"="); is {
			_, _ = fmt.Fprintf(box.Stdout, "it is %s\n", value)
		}
	}
	b.rests(time.Duration(todo.MS) * time.Millisecond)
	if todo.Hold {
		select {
		case <-gate:
		case <-ctx.Done():
			return 137
		}
	}
	if j.call(b, todo) != "" || ctx.Err() != nil {
		return 8
	}
	if todo.Exit > 0 {
		box.Output(failing("Planned", "as it was asked for"))
		return todo.Exit
	}
	result := map[string]string{"mark": todo.Mark}
	if todo.Bytes > 0 {
		b.writes("made/file", fileBytes(todo.Bytes))
		result["file"] = "made/file"
	}
	if todo.Doc != "" {
		raw, err := os.ReadFile(filepath.Join(box.Path("/io/input"), todo.Doc))
		if err != nil {
			return 7
		}
		b.writes("copy", raw)
		result["file"] = "copy"
	}
	box.Output(result)
	return 0
}

// fileBytes are what a job writes into its file.
func fileBytes(n int) []byte { return []byte(strings.Repeat("0123456789abcdef", n/16)) }

// call makes the calls of a job at once, and returns what went wrong. Each has a key: a program asks again when its socket
// was away.
func (j *jobs) call(b boxed, todo jobOrders) (wrong string) {
	if todo.Deep > 0 {
		todo.Calls = []string{todo.Mark + "+"}
	}
	var calls sync.WaitGroup
	var mu sync.Mutex
	for _, mark := range todo.Calls {
		calls.Go(func() {
			args := jobOrders{Mark: mark, Deep: max(todo.Deep-1, 0), Hold: todo.Holds}
			status, answer := b.asks("POST", "/handoff", strings.ReplaceAll(mark, " ", "-"), string(servicetest.JSON(map[string]any{"target": "job", "args": args})))
			if status != "200" || !strings.Contains(answer, `"success":true`) {
				mu.Lock()
				wrong = status + " " + answer
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	return wrong
}

// begin counts that a program has begun, and returns what lets it go.
func (j *jobs) begin(mark string) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun[mark]++
	return j.gateOf(mark)
}

func (j *jobs) gateOf(mark string) chan struct{} {
	if j.gates[mark] == nil {
		j.gates[mark] = make(chan struct{})
	}
	return j.gates[mark]
}

// letGo lets the jobs of marks go on.
func (f *fleet) letGo(marks ...string) {
	f.jobs.mu.Lock()
	defer f.jobs.mu.Unlock()
	for _, mark := range marks {
		close(f.jobs.gateOf(mark))
	}
}

// begun returns how often the program of a mark has begun.
func (f *fleet) begun(mark string) int {
	f.jobs.mu.Lock()
	defer f.jobs.mu.Unlock()
	return f.jobs.begun[mark]
}

func (f *fleet) awaitBegun(marks ...string) {
	f.t.Helper()
	for _, mark := range marks {
		testkit.Eventually(f.t, mark+" has begun", func() bool { return f.begun(mark) > 0 })
	}
}

// job submits a job and returns its run.
func (f *fleet) job(todo jobOrders, files ...client.InputFile) string {
	f.t.Helper()
	return f.jobOf("job", todo, files...)
}

func (f *fleet) jobOf(unit string, todo jobOrders, files ...client.InputFile) string {
	f.t.Helper()
	record, err := f.submit(f.t.Context(), client.Submission{Unit: unit, Input: servicetest.JSON(todo), Files: files})
	if err != nil {
		f.t.Fatal(err)
	}
	return record.ID
}

// succeeded waits for the end of runs, which have to succeed, each begun once.
func (f *fleet) succeeded(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		r := f.await(id)
		var out jobOrders
		_ = json.Unmarshal(r.Output, &out) // an empty one has begun never
		if r.Outcome != api.Success || f.begun(out.Mark) != 1 || len(r.Attempts) > 0 {
			f.t.Errorf("run %s: %s, begun %d times, attempts %d, error %+v, warnings %v", id, r.Outcome, f.begun(out.Mark),
				len(r.Attempts)+1, r.Error, r.Warnings)
		}
	}
}

// fileOf returns what is in the first file of a run.
func (f *fleet) fileOf(r api.Record) []byte {
	f.t.Helper()
	var content bytes.Buffer
	if err := f.client.Files.Get(f.t.Context(), r.ID, r.Files[0], &content); err != nil {
		f.t.Fatal(err)
	}
	return content.Bytes()
}

// far is a worker of this process.
type far struct {
	fleet  *fleet
	name   string
	data   string
	slots  int
	engine memoryEngine
	gate   atomic.Pointer[chan struct{}] // builds, and images that come, wait for it; nil: for nothing
	road   *road
	stop   context.CancelFunc
	ended  chan struct{}
	code   int
	flags  []string
}

// worker has a worker join, with an engine of its own, and waits until it is there.
func (f *fleet) worker(name string, slots int, flags ...string) *far {
	f.t.Helper()
	return f.workerIn(f.t.TempDir(), name, slots, flags...)
}

// workerIn is worker with a data directory.
func (f *fleet) workerIn(data, name string, slots int, flags ...string) *far {
	f.t.Helper()
	w := &far{fleet: f, name: name, data: data, slots: slots, road: newRoad(f.t, f.url()), flags: flags}
	w.engine.Fake = enginetest.NewFake(enginetest.WithInit(f.programs.run))
	w.engine.Hook = func(ctx context.Context, method string) error {
		if gate := w.gate.Load(); gate != nil && (method == "Build" || method == "Load") {
			select {
			case <-*gate:
			case <-ctx.Done():
			}
		}
		return nil
	}
	w.engine.AddImage(runtime.Image{
		ID: "sha256:base", Tags: []string{dockertest.Image, "aod/base"}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
	})
	join, err := f.client.Workers.Add(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	join.Server = w.road.URL
	write(f.t, string(servicetest.JSON(join)), w.data, "join")
	w.begin("--join", filepath.Join(w.data, "join"))
	w.ready()
	f.t.Cleanup(w.end)
	return w
}

// begin starts the worker's command.
func (w *far) begin(flags ...string) {
	w.fleet.t.Helper()
	log, err := os.OpenFile(w.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		w.fleet.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	said := &ui.Output{Writer: log, FD: -1}
	a := newApp(strings.NewReader(""), said, said)
	a.engine = func(docker.Options) (serverEngine, error) { return w.engine, nil }
	w.stop, w.ended = stop, make(chan struct{})
	args := append([]string{"work", "--data", w.data, "--concurrency", fmt.Sprint(w.slots), "--memory", "1TiB", "--pool", "0"}, flags...)
	go func() {
		defer close(w.ended)
		defer log.Close()
		w.code = a.run(ctx, append(args, w.flags...))
	}()
}

// credential is that of the worker.
func (w *far) credential() string {
	w.fleet.t.Helper()
	member, err := worker.ReadMembership(filepath.Join(w.data, "worker"))
	if err != nil {
		w.fleet.t.Fatal(err)
	}
	return member.Credential
}

// lease is the one that the worker has named last.
func (w *far) lease() (lease string) {
	w.road.mu.Lock()
	defer w.road.mu.Unlock()
	for _, asked := range w.road.asked {
		if _, rest, is := strings.Cut(asked, wire.Leases); is {
			lease, _, _ = strings.Cut(rest, "/")
		}
	}
	return lease
}

// asks is how often the worker has asked for an address with this end.
func (w *far) asks(end string) (n int) {
	w.road.mu.Lock()
	defer w.road.mu.Unlock()
	for _, asked := range w.road.asked {
		if strings.HasSuffix(asked, end) {
			n++
		}
	}
	return n
}

// calls is how often a method of its engine was called.
func (w *far) calls(method string) (n int) {
	for _, call := range w.engine.Calls() {
		if call == method {
			n++
		}
	}
	return n
}

func (w *far) logFile() string { return filepath.Join(w.data, "work.log") }

func (w *far) log() string {
	raw, _ := os.ReadFile(w.logFile())
	return string(raw)
}

// state is what the server says of the worker.
func (w *far) state() api.WorkerState {
	all, err := w.fleet.client.Workers.List(context.Background())
	if err != nil {
		return ""
	}
	for _, one := range all {
		if one.Name == w.name {
			return one.State
		}
	}
	return ""
}

func (w *far) ready() {
	w.fleet.t.Helper()
	testkit.Eventually(w.fleet.t, w.name+" is there", func() bool {
		select {
		case <-w.ended:
			w.fleet.t.Fatalf("the worker has ended with %d:\n%s", w.code, w.log())
		default:
		}
		return w.state() == api.WorkerConnected
	})
}

// leave ends the worker's process. What it runs goes on.
func (w *far) leave() {
	w.stop()
	<-w.ended
}

// again ends the worker's process, and starts the next one over a good road.
func (w *far) again() {
	w.fleet.t.Helper()
	w.leave()
	w.road.heals()
	w.begin()
	w.ready()
}

// end ends the worker for good. Nothing of it may be left.
func (w *far) end() {
	if !w.fleet.t.Failed() {
		w.awaitEmpty()
	}
	w.leave()
	if w.fleet.t.Failed() {
		w.fleet.t.Logf("%s:\n%s", w.name, w.log())
	}
}

// awaitEmpty waits until nothing of a run is left at the worker.
func (w *far) awaitEmpty() {
	w.fleet.t.Helper()
	testkit.Eventually(w.fleet.t, "nothing is left at "+w.name, w.isEmpty)
}

// isEmpty reports whether nothing of a run is left at the worker.
func (w *far) isEmpty() bool {
	refs, err := w.engine.ContainersByLabel(context.Background(), nil)
	leases, _ := filepath.Glob(filepath.Join(w.data, "worker", "leases", "*"))
	runs, _ := filepath.Glob(filepath.Join(w.data, "worker", "runs", "*"))
	return err == nil && len(refs)+len(leases)+len(runs) == 0
}
