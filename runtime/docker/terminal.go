package docker

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"

	"github.com/agent-on-demand/aod/runtime"
)

var _ runtime.Terminals = (*Engine)(nil)

// AttachInput attaches to a container's stdin, too. The output of a terminal comes as it is,
// that of other containers in frames.
func (e *Engine) AttachInput(ctx context.Context, id string, terminal bool) (*runtime.Streams, error) {
	conn, err := e.hijack(ctx, "/containers/"+url.PathEscape(id)+"/attach", "stream=1&stdin=1&stdout=1&stderr=1", "")
	if err != nil {
		return nil, e.faultOf(ctx, onContainer("attach to", id), err)
	}
	streams := &runtime.Streams{
		Stdout: endsQuietly{conn}, Stderr: strings.NewReader(""),
		Close: sync.OnceValue(conn.Close),
	}
	if !terminal {
		streams = demultiplex(conn)
	}
	streams.Stdin = inputOf{conn}
	return streams, nil
}

// inputOf is the half of a connection that is a container's stdin.
type inputOf struct{ conn io.ReadWriteCloser }

func (i inputOf) Write(p []byte) (int, error) { return i.conn.Write(p) }

// Close ends the container's input. Its output goes on.
func (i inputOf) Close() error {
	if half, ok := i.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.New("the connection to the engine can't be closed by half")
}

// endsQuietly reads a terminal's output. Its end is an end, however the connection came to it.
type endsQuietly struct{ io.Reader }

func (r endsQuietly) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// Resize sets the size of a container's terminal.
func (e *Engine) Resize(ctx context.Context, id string, size runtime.TerminalSize) error {
	err := e.cli.ContainerResize(ctx, id, container.ResizeOptions{Height: size.Rows, Width: size.Columns})
	return e.faultOf(ctx, onContainer("resize the terminal of", id), err)
}
