package docker

import (
	"context"
	"errors"
	"io"

	"github.com/docker/docker/api/types/container"

	"github.com/agent-on-demand/aod/runtime"
)

// Logs returns what a started container has written and goes on to write, until its end.
// Readers get io.EOF there and after Close. As with Attach, both streams come over one
// connection. Bytes that are no UTF-8 were replaced by the engine.
func (e *Engine) Logs(ctx context.Context, id string) (*runtime.Streams, error) {
	// The client ties the answer to the context of the call, which bounds the call alone.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	callOver := context.AfterFunc(ctx, stop)
	body, err := e.cli.ContainerLogs(following, id,
		container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if !callOver() && err == nil {
		err = errors.Join(ctx.Err(), body.Close())
	}
	if err != nil {
		stop()
		return nil, e.faultOf(ctx, onContainer("read the log of", id), err)
	}
	return demultiplex(logConn{body, stop}), nil
}

// logConn is the body of an answer and what ends it.
type logConn struct {
	io.ReadCloser
	stop context.CancelFunc
}

// Close ends a read that is under way, too.
func (c logConn) Close() error {
	c.stop()
	return c.ReadCloser.Close()
}
