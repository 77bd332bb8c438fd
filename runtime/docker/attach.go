package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Attach returns the output streams of a container. Both come over one connection:
// while one of them isn't read, the other may stand still too, until Close.
// Readers get io.EOF at the container's end and after Close.
//
// It doesn't use the client's attach, which ignores ctx, dials a connection of its own
// each time and hides the engine's answer when that is no.
func (e *Engine) Attach(ctx context.Context, id string) (*runtime.Streams, error) {
	conn, err := e.hijack(ctx, "/containers/"+url.PathEscape(id)+"/attach", "stream=1&stdout=1&stderr=1", "")
	if err != nil {
		return nil, e.faultOf(ctx, onContainer("attach to", id), err)
	}
	return demultiplex(conn), nil
}

// hijack posts JSON, or nothing, to the API and takes the connection over. It closes with
// the result, not with ctx.
func (e *Engine) hijack(ctx context.Context, path, query, body string) (io.ReadWriteCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.URL = e.apiURL(ctx, path, query)
	if e.endpoint.local() {
		req.Host = client.DummyHost
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return nil, connectionLost{err} // an answer, whatever it says, isn't an error here
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, answerError(resp)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok { // net/http promises one with this status
		return nil, errors.Join(errors.New("the connection can't be taken over"), resp.Body.Close())
	}
	return conn, nil
}

func (e *Engine) apiURL(ctx context.Context, route, query string) *url.URL {
	// The version is negotiated by the first call of all, which is hardly ever
	// this one; asking for a version error is how the client is told to do it.
	_ = e.cli.NewVersionError(ctx, "1.0", "")
	u := *e.base
	u.Path = path.Join(u.Path, "/v"+e.cli.ClientVersion(), route)
	u.RawQuery = query
	return &u
}

// answerError makes an error of an answer that isn't the one hoped for.
func answerError(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096)) // only for the operator's log
	if err != nil {
		return connectionLost{err}
	}
	err = fmt.Errorf("engine answered %s: %s", resp.Status, text)
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %w", cerrdefs.ErrNotFound, err)
	}
	return err
}

// demultiplex takes the two streams of conn apart in one goroutine, which ends with
// the connection. Close ends both and waits for it.
func demultiplex(conn io.ReadCloser) *runtime.Streams {
	stdout, stdoutWriter := io.Pipe()
	stderr, stderrWriter := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := copyFrames(stdoutWriter, stderrWriter, conn)
		stdoutWriter.CloseWithError(err)
		stderrWriter.CloseWithError(err)
	}()
	closeAll := sync.OnceValue(func() error {
		// First the pipes: whoever reads sees an end, not a broken connection.
		stdoutWriter.Close()
		stderrWriter.Close()
		err := conn.Close()
		<-done
		return err
	})
	return &runtime.Streams{Stdout: stdout, Stderr: stderr, Close: closeAll}
}

// The frames of an attached stream: one byte of stream, three of nothing, four of
// size (big endian), then the bytes.
const (
	frameHeader = 8
	frameStderr = 2
	frameError  = 3 // the engine's own error
)

// copyFrames copies the frames of r to their streams until r ends. It holds no frame
// in memory, whatever size it claims.
func copyFrames(stdout, stderr io.Writer, r io.Reader) error {
	var header [frameHeader]byte
	buf := make([]byte, 32<<10)
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return endOfStream(err)
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		w := stdout
		switch header[0] {
		case frameStderr:
			w = stderr
		case frameError:
			text, _ := io.ReadAll(io.LimitReader(r, min(size, 1024))) // what there is of it
			return fault.Wrap(fault.Internal, fmt.Errorf("engine: %s", text),
				"the engine broke off the container's output")
		}
		n, err := io.CopyBuffer(w, io.LimitReader(r, size), buf)
		if err != nil || n < size {
			return endOfStream(errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
}

// endOfStream returns nil for an end between frames, as all ends should be.
func endOfStream(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to the engine broke while the container was running")
}

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
