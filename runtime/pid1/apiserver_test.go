//go:build linux

package pid1

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// apiServer answers at a sandbox's /run/aod/aod.sock.
type apiServer struct {
	dir    string // what the sandbox has as /run/aod
	answer func(*net.UnixConn)

	listener net.Listener
	serving  sync.WaitGroup
}

// newAPIServer makes the directory; nobody listens yet.
func newAPIServer(t *testing.T, answer func(*net.UnixConn)) *apiServer {
	t.Helper()
	dir, err := os.MkdirTemp(need(t).dir, "") // short enough for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"init", "report"} { // to be mounted over
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	s := &apiServer{dir: dir, answer: answer}
	t.Cleanup(s.stop)
	return s
}

func (s *apiServer) start(t *testing.T) *apiServer {
	t.Helper()
	socket := filepath.Join(s.dir, "aod.sock")
	listener, err := net.Listen("unix", socket)
	if err := errors.Join(err, os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	s.listener = listener
	s.serving.Go(s.serve)
	return s
}

func (s *apiServer) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer c.Close()
			s.answer(c.(*net.UnixConn))
		})
	}
}

func (s *apiServer) stop() {
	if s.listener != nil {
		s.listener.Close()
	}
	s.serving.Wait()
}

// run runs the program in a sandbox with this API.
func (s *apiServer) run(t *testing.T, program ...string) result {
	t.Helper()
	return sandbox{api: s.dir, program: append([]string{"--", "/probe"}, program...)}.run(t, nil)
}

// echo sends back what it gets, as it comes.
func echo(c *net.UnixConn) { io.Copy(c, c) }

// echoAtTheEnd needs the end of the client's half for its answer.
func echoAtTheEnd(c *net.UnixConn) {
	all, _ := io.ReadAll(c)
	c.Write(all)
}

func ignore(c *net.UnixConn) { io.Copy(io.Discard, c) }
