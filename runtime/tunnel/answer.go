package tunnel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"

	"github.com/hashicorp/yamux"
)

// Socket is the path in the sandbox at which the far end listens. The program can write to
// its directory. Programs are told of another path, which is a link to this one.
const Socket = "/run/aod/reach/aod.sock"

// Program is the path in the sandbox of the program that calls Answer: what it is started as. It
// is fixed: a later version starts the program in sandboxes that it adopts.
const Program = "/run/aod/line"

// maxConns bounds the connections of a program that are open at once. The others wait.
const maxConns = 64

// Answer is the far end. It accepts connections on a unix socket and forwards them over conn.
// It answers each question about the disk with the result of measure. It returns when conn
// ends: nil then, or an error where it can't listen or accept. It replaces a socket that an
// earlier far end left.
func Answer(conn io.ReadWriteCloser, socket string, measure func() Usage) error {
	session, err := yamux.Client(conn, config())
	if err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	defer func() { _ = session.Close() }() // it has ended
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	go func() {
		<-session.CloseChan()
		_ = listener.Close() // lets the loop below end
	}()
	go tell(session, measure)
	return pass(listener, session)
}

func listen(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tunnel: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("tunnel: %w", err)
	}
	listener.SetUnlinkOnClose(false) // it may be the next one's by then
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("tunnel: %w", err), listener.Close())
	}
	return listener, nil
}

// pass joins each connection with a stream of the session.
func pass(listener net.Listener, session *yamux.Session) error {
	slots := make(chan struct{}, maxConns)
	for {
		slots <- struct{}{}
		client, err := listener.Accept()
		if err != nil {
			if session.IsClosed() {
				return nil
			}
			return fmt.Errorf("tunnel: %w", err)
		}
		go func() {
			defer func() { <-slots }()
			join(client.(*net.UnixConn), session)
		}()
	}
}

// join copies bytes in both directions until both have ended.
func join(client *net.UnixConn, session *yamux.Session) {
	defer func() { _ = client.Close() }() // all was said
	stream, err := session.OpenStream()
	if err != nil {
		return
	}
	defer func() { _ = stream.Close() }() // all was said
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(stream, client) // the other end notices by itself
		_ = stream.Close()             // this direction only: the other is still read
	})
	_, _ = io.Copy(client, stream)
	_ = client.CloseWrite()
	_ = client.CloseRead() // nobody reads it any more
	up.Wait()
}

// tell answers each question with one measurement, one after the other.
func tell(session *yamux.Session, measure func() Usage) {
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		_, _ = stream.Write(measure().answer()) // the near end asks again
		_ = stream.Close()
	}
}
