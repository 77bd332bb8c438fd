package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
)

// maxBatch bounds how many messages are kept together, and in bytes all but the last of them.
const (
	maxBatch      = 64
	maxBatchBytes = 256 << 10
)

// output reads a program's stdout ahead by one batch of messages.
type output struct {
	from    io.Closer
	batches chan []message
	closed  chan struct{}
	err     error // why it ended; set before batches is closed
	reading sync.WaitGroup
}

func readOutput(stdout io.ReadCloser, framing Framing) *output {
	o := &output{from: stdout, batches: make(chan []message), closed: make(chan struct{})}
	o.reading.Go(func() { o.read(newMessages(stdout, framing)) })
	return o
}

func (o *output) read(from *messages) {
	defer close(o.batches)
	for o.err == nil {
		var batch []message
		for size := int64(0); o.err == nil && len(batch) < maxBatch && size < maxBatchBytes; {
			var m message
			if m, o.err = from.next(); o.err == nil {
				batch, size = append(batch, m), size+m.size
			}
			if !from.ready() {
				break
			}
		}
		if len(batch) == 0 {
			continue
		}
		select {
		case o.batches <- batch:
		case <-o.closed:
			return
		}
	}
}

// next returns what the program wrote next, in one batch. The error is ErrProgramEnded, a
// *ProgramError or the cause of the context's end.
func (o *output) next(ctx context.Context) ([]message, error) {
	select {
	case batch, more := <-o.batches:
		if more {
			return batch, nil
		}
		if bad, is := o.err.(*ProgramError); is { //nolint:errorlint // messages returns it as it is
			return nil, bad
		}
		return nil, ErrProgramEnded
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (o *output) close() {
	close(o.closed)
	_ = o.from.Close() // nothing more is read
	o.reading.Wait()
}

// input writes messages to a program's stdin.
type input struct {
	to      io.WriteCloser
	framing Framing
	broken  bool // nothing more can be written
	writing sync.WaitGroup
}

// write writes a message. A program that reads no more isn't over: what it says is still heard,
// to its end. The error is another one of the pipe's, or the cause of the context's end.
func (in *input) write(ctx context.Context, body []byte) error {
	if in.broken {
		return nil
	}
	written := make(chan error, 1)
	in.writing.Go(func() {
		_, err := in.to.Write(frame(in.framing, body))
		written <- err
	})
	select {
	case err := <-written:
		in.broken = err != nil
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		return err
	case <-ctx.Done():
		in.broken = true
		return context.Cause(ctx)
	}
}

func (in *input) close() {
	_ = in.to.Close() // nothing more is written
	in.writing.Wait()
}
