package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/pause"
)

// streamPause is the time between two looks at the other process.
const streamPause = 10 * time.Millisecond

// MakePipe makes a pipe in /io/input. A filter can have it as its stdin while Feed writes it.
// It doesn't work with a remote engine.
func (l Layout) MakePipe(name string) error {
	path := filepath.Join(l.input(), filepath.FromSlash(name))
	if err := makePipe(path); err != nil {
		return unwritable(fmt.Errorf("pipe: %w", err))
	}
	return unwritable(os.Chmod(path, 0o644)) // whatever the umask is
}

// Feed copies r into the pipe until r, the pipe's reader or ctx ends, and closes the pipe. The
// error is r's.
func (l Layout) Feed(ctx context.Context, name string, r io.Reader) error {
	pipe, err := l.openPipe(ctx, name)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = pipe.SetWriteDeadline(time.Now()) })()
	_, err = io.Copy(pipe, r)
	err = errors.Join(err, pipe.Close())
	if errors.Is(err, syscall.EPIPE) || ctx.Err() != nil { // the reader is gone
		return nil
	}
	return err
}

// openPipe waits until the sandbox has opened its end: earlier writes would be lost.
func (l Layout) openPipe(ctx context.Context, name string) (*os.File, error) {
	path := filepath.Join(l.input(), filepath.FromSlash(name))
	for {
		pipe, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) {
			return pipe, err
		}
		if err := pause.For(ctx, streamPause); err != nil {
			return nil, err
		}
	}
}

// FollowStdout copies a filter's stdout to w while the filter writes it, until ctx ends, and
// then the rest. The error is w's, or says that the file can't be read.
func (l Layout) FollowStdout(ctx context.Context, w io.Writer) error {
	f, err := l.OpenStdout()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	for {
		ended := ctx.Err() != nil
		if _, err := io.Copy(w, f); err != nil || ended {
			return err
		}
		_ = pause.For(ctx, streamPause) // an end is seen above
	}
}
