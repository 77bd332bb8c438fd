package runtime

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
)

// Console is the user's end of a sandbox: the streams of a shell, or of another program.
type Console struct {
	Command []string // the program, in the sandbox
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // gets nothing with Terminal; nil: the sandbox's log
	// Terminal gives the shell a terminal, whose size follows Size: once at the start, and
	// whenever Resized has a value.
	Terminal bool
	Size     func() TerminalSize
	Resized  <-chan struct{}
	// Opened, unless it is nil, is called when the sandbox is about to start. Nobody else should write to the
	// streams from then on.
	Opened func()
}

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct{ Rows, Columns uint }

// Terminals connects a person with a container's program.
type Terminals interface {
	// AttachInput is Attach for a container with ContainerSpec.Stdin: the streams have a
	// Stdin. With terminal, which is ContainerSpec.Terminal, all output comes as stdout.
	AttachInput(ctx context.Context, id string, terminal bool) (*Streams, error)
	// Resize sets the size of a running container's terminal.
	Resize(ctx context.Context, id string, size TerminalSize) error
}

// attach returns the streams of the container: those of a shell have a stdin.
func (s *Sandbox) attach(ctx context.Context) (*Streams, error) {
	if s.console == nil {
		return s.engine.Attach(ctx, s.id)
	}
	terminals, ok := s.engine.(Terminals)
	if !ok {
		return nil, fault.New(fault.Unsupported, "the engine can't connect a shell")
	}
	return terminals.AttachInput(ctx, s.id, s.console.Terminal)
}

// talk connects the user with the shell until the shell's output ends.
func (s *Sandbox) talk(streams *Streams, log *Log) {
	s.streams = streams
	c := s.console
	if c.Stderr == nil {
		s.log = log
	}
	if c.Opened != nil {
		c.Opened()
	}
	go func() { // a read of a terminal can't be interrupted, so that nobody waits for it
		_, _ = io.Copy(streams.Stdin, c.Stdin) // the shell may end before its input does
		_ = streams.Stdin.Close()
	}()
	go func() {
		defer close(s.drained)
		var outputs sync.WaitGroup
		outputs.Go(func() { pour(c.Stdout, streams.Stdout) })
		outputs.Go(func() {
			if c.Stderr == nil {
				log.read("stderr", streams.Stderr)
				return
			}
			pour(c.Stderr, streams.Stderr)
		})
		outputs.Wait()
	}()
}

// pour copies to the end of the stream, also when its reader has gone: a container stalls
// whose output nobody takes.
func pour(to io.Writer, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_, _ = io.Copy(io.Discard, from)
	}
}

const (
	resizeTries = 10
	resizePause = 20 * time.Millisecond
)

// followSize gives the shell's terminal the size of the user's until life ends.
func (s *Sandbox) followSize(life context.Context) {
	c := s.console
	if c == nil || !c.Terminal || c.Size == nil {
		return
	}
	terminals, ok := s.engine.(Terminals)
	if !ok {
		return // attach said so
	}
	s.tunnels.Go(func() {
		for range resizeTries { // an engine that has just started a program may not know its terminal yet
			if terminals.Resize(life, s.id, c.Size()) == nil {
				break
			}
			if pause.For(life, resizePause) != nil {
				return
			}
		}
		for {
			select {
			case <-c.Resized:
				_ = terminals.Resize(life, s.id, c.Size()) // the next one may succeed
			case <-life.Done():
				return
			}
		}
	})
}
