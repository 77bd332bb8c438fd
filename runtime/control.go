package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"sync"

	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// control is this process's end of the connection that a sandbox's init makes before there
// is a program. Nobody else gets one: of those who connect only the first is heard, so that
// what it says is the init's word, unlike the report's file.
type control struct {
	listener net.Listener
	socket   string        // its file
	ready    chan struct{} // closed when the init is there
	good     chan struct{} // closed when it told of a success: report is set then
	served   chan struct{} // closed when no more is to come
	report   initreport.Report

	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

// openControl listens for the init of a sandbox that is about to be started.
func (l Layout) openControl(ctx context.Context) (*control, error) {
	listener, err := l.listen(ctx, path.Base(initreport.ControlPath))
	if err != nil {
		return nil, fmt.Errorf("listen for init: %w", err)
	}
	c := &control{listener: listener, socket: l.path("aod/" + path.Base(initreport.ControlPath)), ready: make(chan struct{}), good: make(chan struct{}), served: make(chan struct{})}
	go c.serve()
	return c, nil
}

func (c *control) serve() {
	defer close(c.served)
	conn, err := c.listener.Accept()
	_ = c.listener.Close() // the program shall find nobody here, and nothing
	_ = os.Remove(c.socket)
	if err != nil || !c.keep(conn) {
		return
	}
	defer func() { _ = conn.Close() }() // nothing is to be written any more
	if !greets(conn) {
		return
	}
	close(c.ready)
	raw, err := io.ReadAll(io.LimitReader(conn, initreport.MaxBytes+1))
	if err != nil {
		return
	}
	if c.report, err = initbin.ParseReport(raw); err == nil && succeeded(c.report) {
		close(c.good)
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

func greets(conn net.Conn) bool {
	word := make([]byte, len(initreport.Ready))
	_, err := io.ReadFull(conn, word)
	return err == nil && string(word) == initreport.Ready
}

// succeeded: of all other ends the engine's own word is waited for, and the whole log.
func succeeded(r initreport.Report) bool {
	return r.ExitCode == 0 && r.Signal == 0 && r.StartError == "" && !r.Terminated && !r.Abandoned && r.OOMKills == 0
}

// success is closed when the init has told of one. Of no control it never is.
func (c *control) success() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.good
}

// begin lets a parked init start its program.
func (c *control) begin(m initbin.StartMessage) error {
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

// close ends the connection and waits for that. It may be called again, and of none.
func (c *control) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	if c.conn != nil {
		_ = c.conn.Close() // nobody listens any more
	}
	c.mu.Unlock()
	if err := c.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return // and it never accepts anybody: the file is gone
	}
	<-c.served
}
