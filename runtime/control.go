package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// control is our end of the connection that a sandbox's init makes before it starts the
// program. Only the first connection is accepted, so that it is the init's: a program can't
// forge what comes over it, unlike the report's file.
type control struct {
	listener net.Listener
	socket   string        // its file
	ready    chan struct{} // closed when the init is there
	success  chan struct{} // closed when it told of a success: report is set then
	done     chan struct{} // closed when serve has returned
	report   initreport.Report
	stays    bool // after a success the init stays until dismiss: whoever is told of it calls that

	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

// openControl listens for the init of a sandbox that is about to be started.
func openControl(ctx context.Context, l Layout, stays bool) (*control, error) {
	listener, err := l.listen(ctx, path.Base(initreport.ControlPath))
	if err != nil {
		return nil, fmt.Errorf("listen for init: %w", err)
	}
	c := &control{
		listener: listener, socket: l.path("aod/" + path.Base(initreport.ControlPath)), stays: stays,
		ready: make(chan struct{}), success: make(chan struct{}), done: make(chan struct{}),
	}
	go c.serve()
	return c, nil
}

// serve accepts the init's connection and reads what it tells.
func (c *control) serve() {
	defer close(c.done)
	conn, err := c.listener.Accept()
	_ = c.listener.Close() // nobody else shall connect
	_ = os.Remove(c.socket)
	if err != nil || !c.keep(conn) {
		return
	}
	if !c.read(conn) || !c.stays {
		c.dismiss()
	}
}

// read reports whether the init told of a success.
func (c *control) read(conn net.Conn) bool {
	if !readReady(conn) {
		return false
	}
	close(c.ready)
	raw, err := io.ReadAll(io.LimitReader(conn, initreport.MaxBytes+1))
	if err != nil {
		return false
	}
	if c.report, err = initbin.ParseReport(raw); err != nil || !succeeded(c.report) {
		return false
	}
	close(c.success)
	return true
}

// dismiss ends the connection: an init that told of its program's end ends then, too. It may be
// called again, and on nil.
func (c *control) dismiss() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.conn != nil {
		_ = c.conn.Close() // nothing is to be said any more
	}
}

// keep remembers the connection, so that close ends it.
func (c *control) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close() // nothing was said
		return false
	}
	c.conn = conn
	return true
}

// readReady reports whether the connection begins as an init's does.
func readReady(conn net.Conn) bool {
	word := make([]byte, len(initreport.Ready))
	_, err := io.ReadFull(conn, word)
	return err == nil && string(word) == initreport.Ready
}

// succeeded reports whether the program succeeded. After any other end, Wait waits for the
// engine's own word and the whole log.
func succeeded(r initreport.Report) bool {
	return r.ExitCode == 0 && r.Signal == 0 && r.StartError == "" && !r.Terminated && !r.Abandoned && r.OOMKills == 0
}

// succeeds is closed when the init has told of a success. It is nil where there is no control.
func (c *control) succeeds() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.success
}

// send lets a parked init start its program.
func (c *control) send(m initbin.StartMessage) error {
	raw, err := m.Append(nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return errNoInit
	}
	_, err = conn.Write(raw)
	return err
}

var errNoInit = errors.New("the sandbox's init has not connected")

// close ends the connection and waits for serve. It may be called again, and on nil.
func (c *control) close() {
	if c == nil {
		return
	}
	c.dismiss()
	if err := c.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return // the listener can't be closed: serve may never return
	}
	<-c.done
}

const socketName = "aod.sock"

// maxSocketPath is the length in bytes that a socket's address may have on every system.
const maxSocketPath = 103

// listenIn makes the socket in dir. Where its path is too long, it names dir by its descriptor.
func listenIn(ctx context.Context, dir *os.File, name string) (net.Listener, error) {
	path := filepath.Join(dir.Name(), name)
	if len(path) > maxSocketPath {
		path = filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), name)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // the socket is removed with its directory
	return listener, nil
}
