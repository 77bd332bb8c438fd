package enginetest

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// fakeContainer is one container of a Fake. It exits once.
type fakeContainer struct {
	spec          runtime.ContainerSpec
	ctx           context.Context //nolint:containedctx // the program's, which outlives the call that starts it
	kill          context.CancelFunc
	terminateOnce func()

	mu      sync.Mutex
	state   runtime.ContainerState
	done    chan struct{} // closed when it has exited
	gone    chan struct{} // closed when the program does nothing more; nil before there is one
	outputs []*fakeOutput
	waiting []chan runtime.Exit
	logs    []*runtime.Streams // that are followed
	log     *fakeLog           // kept where the spec says so
}

func newFakeContainer(spec runtime.ContainerSpec) *fakeContainer {
	terminated := make(chan struct{})
	ctx, kill := context.WithCancel(context.WithValue(context.Background(), terminatedKey{}, terminated))
	return &fakeContainer{
		spec: spec, ctx: ctx, kill: kill, done: make(chan struct{}), log: newFakeLog(),
		terminateOnce: sync.OnceFunc(func() { close(terminated) }),
	}
}

// fakeOutput is one attached reader of both streams.
type fakeOutput struct{ stdout, stderr *io.PipeWriter }

func (o *fakeOutput) close() error {
	o.stdout.Close()
	o.stderr.Close()
	return nil
}

func (c *fakeContainer) attach() *runtime.Streams {
	c.mu.Lock()
	defer c.mu.Unlock()
	stdout, stdoutWriter := io.Pipe()
	stderr, stderrWriter := io.Pipe()
	out := &fakeOutput{stdoutWriter, stderrWriter}
	c.outputs = append(c.outputs, out)
	if c.hasExited() {
		out.close()
	}
	return &runtime.Streams{Stdout: stdout, Stderr: stderr, Close: out.close}
}

// follow returns the log, for as long as nobody cuts it off.
func (c *fakeContainer) follow() *runtime.Streams {
	c.mu.Lock()
	defer c.mu.Unlock()
	streams := c.log.follow()
	c.logs = append(c.logs, streams)
	return streams
}

// cut breaks the connections of those who watch.
func (c *fakeContainer) cut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.outputs {
		_ = o.close() // as it always is
	}
	for _, streams := range c.logs {
		_ = streams.Close() // nobody reads them any more
	}
	for _, exits := range c.waiting {
		exits <- runtime.Exit{Err: err}
	}
	c.waiting, c.logs = nil, nil
}

func (c *fakeContainer) subscribe() <-chan runtime.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	exits := make(chan runtime.Exit, 1)
	c.waiting = append(c.waiting, exits)
	return exits
}

func (c *fakeContainer) start(program Program) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasExited() {
		return fault.New(fault.Unsupported, "a fake container starts once")
	}
	if c.state.Running {
		return nil
	}
	c.state.Running, c.state.StartedAt = true, time.Now()
	stdout, stderr := c.writers()
	gone := make(chan struct{})
	c.gone = gone
	go func() {
		defer close(gone)
		code := program(c.ctx, c.spec, stdout, stderr)
		if code == OOMKilled {
			c.exit(137, true)
			return
		}
		c.exit(code, false)
	}()
	return nil
}

func (c *fakeContainer) writers() (stdout, stderr io.Writer) {
	outs, errs := []io.Writer{attached{c, false}}, []io.Writer{attached{c, true}}
	if c.spec.LogBytes > 0 {
		outs = append(outs, c.log.writer(false))
		errs = append(errs, c.log.writer(true))
	}
	return io.MultiWriter(outs...), io.MultiWriter(errs...)
}

// attached writes to everybody who is attached at the time. It goes on without its readers, as a
// container does.
type attached struct {
	c      *fakeContainer
	stderr bool
}

func (a attached) Write(p []byte) (int, error) {
	a.c.mu.Lock()
	outputs := slices.Clone(a.c.outputs)
	a.c.mu.Unlock()
	for _, o := range outputs {
		w := o.stdout
		if a.stderr {
			w = o.stderr
		}
		_, _ = w.Write(p) // it fails when nobody reads any more
	}
	return len(p), nil
}

// exit ends a running container, the first time that it is called.
func (c *fakeContainer) exit(code int, oomKilled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill()
	if !c.state.Running {
		return
	}
	c.state.Running, c.state.ExitCode, c.state.OOMKilled = false, code, oomKilled
	c.state.FinishedAt = time.Now()
	close(c.done)
	c.log.end()
	for _, o := range c.outputs {
		o.close()
	}
	for _, exits := range c.waiting {
		exits <- runtime.Exit{Code: code}
	}
	c.waiting = nil
}

// goneTime is what a program has that doesn't listen.
const goneTime = 5 * time.Second

// kills ends the container and returns when its program is gone, as an engine does.
func (c *fakeContainer) kills() {
	c.exit(137, false)
	c.mu.Lock()
	gone := c.gone
	c.mu.Unlock()
	if gone == nil {
		return
	}
	timer := time.NewTimer(goneTime)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
}

func (c *fakeContainer) hasExited() bool { return !c.state.FinishedAt.IsZero() }

// ended returns a channel that is closed while the container isn't running.
func (c *fakeContainer) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Running || c.hasExited() {
		return c.done
	}
	never := make(chan struct{})
	close(never)
	return never
}

func (c *fakeContainer) inspect() runtime.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state
	switch {
	case state.Running:
		state.Status = runtime.StatusRunning
	case state.StartedAt.IsZero():
		state.Status = runtime.StatusCreated
	default:
		state.Status = runtime.StatusExited
	}
	return state
}
