package line

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

// Socket is where the far end listens. Its directory is open to the program; the way to it
// that programs are told of is a link.
const Socket = "/run/aod/reach/aod.sock"

// maxConns bounds the connections of a program that are under way. The others wait.
const maxConns = 64

// Answer is the far end of a line: it takes connections on a unix socket and passes them on
// by conn, and answers questions with what measure says, until conn ends. A socket that is
// there, of a far end whose near end has died, is replaced.
func Answer(conn io.ReadWriteCloser, socket string, measure func() Usage) error {
	session, err := yamux.Client(conn, config())
	if err != nil {
		return fmt.Errorf("line: %w", err)
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
		return nil, fmt.Errorf("line: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("line: %w", err)
	}
	listener.SetUnlinkOnClose(false) // it may be the next one's by then
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("line: %w", err), listener.Close())
	}
	return listener, nil
}

// pass joins each connection with one of the line's.
func pass(listener net.Listener, session *yamux.Session) error {
	slots := make(chan struct{}, maxConns)
	for {
		slots <- struct{}{}
		client, err := listener.Accept()
		if err != nil {
			if session.IsClosed() {
				return nil
			}
			return fmt.Errorf("line: %w", err)
		}
		go func() {
			defer func() { <-slots }()
			join(client.(*net.UnixConn), session)
		}()
	}
}

// join passes bytes on in both directions to the end of both.
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
		_ = stream.Close()             // of this direction: what comes is still read
	})
	_, _ = io.Copy(client, stream)
	_ = client.CloseWrite()
	_ = client.CloseRead() // nobody hears any more
	up.Wait()
}

// tell answers each question with one measurement, one after the other.
func tell(session *yamux.Session, measure func() Usage) {
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		_, _ = stream.Write(measure().answer()) // who asked asks again
		_ = stream.Close()
	}
}
