package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Program is what a fake container runs; it returns the exit code, or OOMKilled.
// The end of ctx is SIGKILL: the program must return soon, and what it returns is
// not asked for any more. SIGTERM is told by Terminated and otherwise ignored, as
// by a PID 1 without a handler.
type Program func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int

// OOMKilled is what a Program returns for exit code 137 with the engine's word that
// memory ran out.
const OOMKilled = -1

type terminatedKey struct{}

// Terminated returns the channel that is closed when the container gets SIGTERM.
// The context is a Program's.
func Terminated(ctx context.Context) <-chan struct{} {
	return ctx.Value(terminatedKey{}).(chan struct{})
}

// Fake is an engine in memory, safe for concurrent use. Set its fields before.
type Fake struct {
	// Program runs in every container.
	Program Program
	// RunStep does a RUN of a build; nil and 0 are success.
	RunStep func(ctx context.Context, command string, output io.Writer) int
	// Hook is asked first in every method, by the method's name; its error is the
	// method's.
	Hook func(ctx context.Context, method string) error
	// Lost is asked when a method has done what it was asked for, by its name; its error takes the
	// place of the answer.
	Lost func(method string) error
	// CPU is what CPUTime returns of a container; nil: none has used any.
	CPU func(spec runtime.ContainerSpec) time.Duration
	// Info is what Probe returns.
	Info runtime.EngineInfo

	mu         sync.Mutex
	calls      []string
	made       int
	images     []*runtime.Image
	built      map[string]bool // instructions that were built once, by content
	containers map[string]*fakeContainer
}

var _ runtime.Engine = (*Fake)(nil)

// NewFake returns an engine without images; a nil program exits 0 at once.
func NewFake(program Program) *Fake {
	if program == nil {
		program = func(context.Context, runtime.ContainerSpec, io.Writer, io.Writer) int { return 0 }
	}
	return &Fake{
		Program: program,
		Info: runtime.EngineInfo{
			Endpoint: "fake", Local: true, Name: "fake", Version: "0", APIVersion: "1.41", CgroupVersion: "2",
			OS: "linux", Arch: "amd64", CPUs: 2, MemoryBytes: 4 << 30, Runtimes: []string{"runc"}, Security: []string{"seccomp"},
		},
		built:      map[string]bool{},
		containers: map[string]*fakeContainer{},
	}
}

// Calls returns the names of the methods called so far, in order.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Spec returns the spec of a container that was made and not removed.
func (f *Fake) Spec(id string) (runtime.ContainerSpec, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.containers[id]
	if c == nil {
		return runtime.ContainerSpec{}, false
	}
	return c.spec, true
}

// lost returns the error that takes the place of an answer, or err.
func (f *Fake) lost(method string, err error) error {
	if f.Lost == nil || err != nil {
		return err
	}
	return f.Lost(method)
}

// Cut breaks all connections: streams end, and who waits for an exit hears err instead. The
// containers go on.
func (f *Fake) Cut(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		c.cut(err)
	}
}

func (f *Fake) call(ctx context.Context, method string) error {
	f.mu.Lock()
	f.calls = append(f.calls, method)
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if f.Hook == nil {
		return nil
	}
	return f.Hook(ctx, method)
}

// Probe returns f.Info.
func (f *Fake) Probe(ctx context.Context) (runtime.EngineInfo, error) {
	return f.Info, f.lost("Probe", f.call(ctx, "Probe"))
}

// Create makes a container of an image that the fake has. Mount sources must exist
// on this machine.
func (f *Fake) Create(ctx context.Context, spec runtime.ContainerSpec) (string, error) {
	if err := f.call(ctx, "Create"); err != nil {
		return "", err
	}
	for _, m := range spec.Mounts {
		if _, err := os.Stat(m.Source); err != nil {
			return "", fault.Wrap(fault.Internal, err, "a directory to mount does not exist on the engine's host")
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.find(spec.Image) == nil {
		return "", fault.New(fault.NotFound, "the engine has no image %s", spec.Image)
	}
	for _, c := range f.containers {
		if spec.Name != "" && c.spec.Name == spec.Name {
			return "", fault.New(fault.Conflict, "a container of this name is there already")
		}
	}
	id := f.newID()
	f.containers[id] = newFakeContainer(spec)
	return id, f.lost("Create", nil)
}

// Adopt has a container that another Fake made, under its id. It hasn't started.
func (f *Fake) Adopt(id string, spec runtime.ContainerSpec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.containers[id] = newFakeContainer(spec)
	if made, err := strconv.ParseInt(id, 16, 64); err == nil {
		f.made = max(f.made, int(made))
	}
}

// newID returns an id as long as an engine's.
func (f *Fake) newID() string {
	f.made++
	return fmt.Sprintf("%064x", f.made)
}

// container returns a container after the method was called on it.
func (f *Fake) container(ctx context.Context, method, id string) (*fakeContainer, error) {
	if err := f.call(ctx, method); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil {
		return c, nil
	}
	return nil, fault.New(fault.NotFound, "the engine has no container %s", id)
}

// Attach returns the container's output.
func (f *Fake) Attach(ctx context.Context, id string) (*runtime.Streams, error) {
	c, err := f.container(ctx, "Attach", id)
	if err != nil {
		return nil, err
	}
	return f.passOn("Attach", c.attach())
}

// passOn returns streams, unless the answer that has them is lost: they end with its connection then, for a
// program would wait for ever for who reads them.
func (f *Fake) passOn(method string, streams *runtime.Streams) (*runtime.Streams, error) {
	if err := f.lost(method, nil); err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	return streams, nil
}

// Logs returns what the container has written since its start.
func (f *Fake) Logs(ctx context.Context, id string) (*runtime.Streams, error) {
	c, err := f.container(ctx, "Logs", id)
	if err != nil {
		return nil, err
	}
	if c.spec.LogBytes == 0 {
		return nil, fault.New(fault.Unsupported, "the engine has not kept the container's output")
	}
	return f.passOn("Logs", c.follow())
}

// NextExit subscribes to the container's next exit.
func (f *Fake) NextExit(ctx context.Context, id string) (<-chan runtime.Exit, error) {
	c, err := f.container(ctx, "NextExit", id)
	if err != nil {
		return nil, err
	}
	return c.subscribe(), f.lost("NextExit", nil)
}

// Start runs the program on a goroutine that ends with it.
func (f *Fake) Start(ctx context.Context, id string) error {
	c, err := f.container(ctx, "Start", id)
	if err != nil {
		return err
	}
	return f.lost("Start", c.start(f.Program))
}

// Stop tells the program and, after the grace time, kills it.
func (f *Fake) Stop(ctx context.Context, id string, grace time.Duration) error {
	c, err := f.container(ctx, "Stop", id)
	if err != nil {
		return ignoreNotFound(err)
	}
	c.terminateOnce()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended():
	case <-timer.C:
		c.exit(137, false)
	case <-ctx.Done():
		return ctx.Err()
	}
	return f.lost("Stop", nil)
}

// Kill ends the container.
func (f *Fake) Kill(ctx context.Context, id string) error {
	c, err := f.container(ctx, "Kill", id)
	if err != nil {
		return ignoreNotFound(err)
	}
	c.exit(137, false)
	return f.lost("Kill", nil)
}

// Inspect returns the container's state.
func (f *Fake) Inspect(ctx context.Context, id string) (runtime.ContainerState, error) {
	c, err := f.container(ctx, "Inspect", id)
	if err != nil {
		return runtime.ContainerState{}, err
	}
	return c.inspect(), f.lost("Inspect", nil)
}

// CPUTime returns what f.CPU says.
func (f *Fake) CPUTime(ctx context.Context, id string) (time.Duration, error) {
	c, err := f.container(ctx, "CPUTime", id)
	if err != nil || f.CPU == nil {
		return 0, err
	}
	return f.CPU(c.spec), nil
}

// Remove ends the container and forgets it.
func (f *Fake) Remove(ctx context.Context, id string) error {
	c, err := f.container(ctx, "Remove", id)
	if err != nil {
		return ignoreNotFound(err)
	}
	c.kills()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.containers, id)
	return f.lost("Remove", nil)
}

// ContainersByLabel lists the containers that carry all the labels, by id.
func (f *Fake) ContainersByLabel(ctx context.Context, labels map[string]string) ([]runtime.ContainerRef, error) {
	if err := f.call(ctx, "ContainersByLabel"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var refs []runtime.ContainerRef
	for _, id := range slices.Sorted(maps.Keys(f.containers)) {
		c := f.containers[id]
		if carries(c.spec.Labels, labels) {
			refs = append(refs, runtime.ContainerRef{ID: id, Labels: maps.Clone(c.spec.Labels), State: c.inspect().Status})
		}
	}
	return refs, f.lost("ContainersByLabel", nil)
}

// carries reports that all the labels are there; an empty value matches any.
func carries(have, labels map[string]string) bool {
	for name, want := range labels {
		if got, ok := have[name]; !ok || (want != "" && got != want) {
			return false
		}
	}
	return true
}

func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
