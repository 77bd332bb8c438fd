//go:build linux

package pid1

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// listenForInit listens where a sandbox with this directory finds its host.
func listenForInit(t *testing.T, dir string) *net.UnixListener {
	t.Helper()
	socket := filepath.Join(dir, filepath.Base(initreport.ControlPath))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err := errors.Join(err, os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	t.Cleanup(func() { listener.Close() })
	return listener
}

// runWith runs the sandbox while its host, which takes the one connection of the init
// and no other, plays its part.
func (s sandbox) runWith(t *testing.T, part func(*net.UnixConn)) result {
	t.Helper()
	if s.api == "" {
		s.api = newAPIServer(t, nil).dir
	}
	listener := listenForInit(t, s.api)
	var playing sync.WaitGroup
	defer playing.Wait()
	playing.Go(func() {
		c, err := meetInit(listener)
		if err != nil {
			t.Errorf("init didn't come: %v", err)
			return
		}
		defer c.Close()
		part(c)
	})
	r := s.run(t, nil)
	playing.Wait()
	return r
}

// meetInit takes a connection, and reads what init says first.
func meetInit(listener *net.UnixListener) (*net.UnixConn, error) {
	deadline := time.Now().Add(testkit.Patience)
	if err := listener.SetDeadline(deadline); err != nil {
		return nil, err
	}
	c, err := listener.AcceptUnix()
	listener.Close()
	if err != nil {
		return nil, err
	}
	said := make([]byte, len(initreport.Ready))
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, said); err != nil || string(said) != initreport.Ready {
		c.Close()
		return nil, errors.Join(err, errors.New("it said "+string(said)))
	}
	return c, nil
}

// beside is the output of a program that is run beside the container's own.
func beside(t *testing.T, program ...string) string {
	t.Helper()
	out, err := exec.Command("docker", append([]string{"exec", containerName(t)}, program...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}
