//go:build linux

package pid1

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// connected is a command whose init tells its host.
func connected(program ...string) []string {
	return append([]string{"-control", initreport.ControlPath, "--"}, program...)
}

func TestControl(t *testing.T) {
	for _, c := range []struct {
		name    string
		program []string
		code    int
	}{
		{"the report of a program", connected("/probe", "exit", "42"), 42},
		{"the report of a start that failed", connected("/missing"), 127},
		{"the report of a wrong use", []string{"-control", initreport.ControlPath, "--"}, 125},
	} {
		t.Run(c.name+" is what the file has", func(t *testing.T) {
			var told []byte
			r := sandbox{program: c.program}.runWith(t, func(c *net.UnixConn) { told, _ = io.ReadAll(c) })
			if r.report(t).ExitCode != c.code || r.code != c.code || string(told) != string(r.raw) {
				t.Errorf("told %s; %+v", told, r)
			}
		})
	}
	t.Run("ready has been said before the program ends", func(t *testing.T) {
		dir := newAPIServer(t, nil).dir
		listener := listenForInit(t, dir)
		r := sandbox{api: dir, program: connected("/probe", "wait")}.run(t, func(container string) {
			c, err := meetInit(listener)
			if err != nil {
				t.Error(err)
			} else {
				defer c.Close()
			}
			signalTo(t, syscall.SIGTERM)(container)
		})
		if report := r.report(t); r.code != 143 || !report.Terminated {
			t.Errorf("%+v", r)
		}
	})
	t.Run("the program can't use the connection", func(t *testing.T) {
		dir := newAPIServer(t, nil).dir
		listener := listenForInit(t, dir)
		r := sandbox{api: dir, program: connected("/probe", "descriptors", "self", "1")}.run(t, nil)
		if strings.Contains(r.stdout, "socket") || !strings.HasSuffix(r.stdout, "\n1 open /proc/1/fd: permission denied\n") {
			t.Errorf("%+v", r)
		}
		if c, err := meetInit(listener); err != nil {
			t.Error(err) // there was one to be used
		} else {
			c.Close()
		}
	})
}

func TestControlIsToldWhenEverythingIsDead(t *testing.T) {
	held, done := make(chan *net.UnixConn, 1), make(chan struct{})
	s := newAPIServer(t, func(c *net.UnixConn) {
		held <- c
		c.Write([]byte("x"))
		<-done
	}).start(t)
	defer close(done)
	var alive error
	r := sandbox{api: s.dir, program: connected("/probe", "hold", "3")}.runWith(t, func(c *net.UnixConn) {
		io.ReadAll(c)
		select {
		case left := <-held:
			alive = stillOpen(left)
		default:
			alive = errors.New("it never came")
		}
	})
	if report := r.report(t); r.code != 3 || report.ProcessesLeft != 1 || alive != nil {
		t.Errorf("a process was there when the report came: %v; %+v", alive, r)
	}
}

// stillOpen returns an error unless the other end of a connection has gone.
func stillOpen(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	readErr := raw.Read(func(fd uintptr) bool {
		_, err = syscall.Read(int(fd), make([]byte, 1)) // it doesn't block, so EAGAIN is a peer that lives
		return true
	})
	if readErr != nil {
		return readErr
	}
	return err
}

func TestControlOutlivesItsHost(t *testing.T) {
	check := func(t *testing.T, r result, since time.Time) {
		t.Helper()
		if report := r.report(t); r.code != 42 || report.ExitCode != 42 || r.stderr != "" || time.Since(since) > testkit.Patience {
			t.Errorf("%+v", r)
		}
	}
	program := connected("/probe", "exit", "42")
	t.Run("nobody ever listened", func(t *testing.T) {
		start := time.Now()
		check(t, sandbox{api: newAPIServer(t, nil).dir, program: program}.run(t, nil), start)
	})
	t.Run("one that doesn't take the connection", func(t *testing.T) {
		start, dir := time.Now(), newAPIServer(t, nil).dir
		listenForInit(t, dir)
		check(t, sandbox{api: dir, program: program}.run(t, nil), start)
	})
	t.Run("one that has gone", func(t *testing.T) {
		start, dir := time.Now(), newAPIServer(t, nil).dir
		listenForInit(t, dir).Close()
		check(t, sandbox{api: dir, program: program}.run(t, nil), start)
	})
	t.Run("one that goes early", func(t *testing.T) {
		start := time.Now()
		check(t, sandbox{program: program}.runWith(t, func(*net.UnixConn) {}), start)
	})
	t.Run("one that doesn't read", func(t *testing.T) {
		start, dir := time.Now(), newAPIServer(t, nil).dir
		listener, met := listenForInit(t, dir), make(chan *net.UnixConn, 1)
		go func() {
			defer close(met)
			c, err := meetInit(listener)
			if err != nil {
				t.Error(err)
				return
			}
			met <- c
		}()
		check(t, sandbox{api: dir, program: program}.run(t, nil), start)
		if c := <-met; c != nil {
			c.Close()
		}
	})
	t.Run("one that never lets it go", func(t *testing.T) {
		start, dir := time.Now(), newAPIServer(t, nil).dir
		listener := listenForInit(t, dir)
		var held *net.UnixConn
		over := make(chan struct{})
		go func() {
			defer close(over)
			var err error
			if held, err = meetInit(listener); err == nil {
				_, err = io.ReadAll(held)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		check(t, sandbox{api: dir, program: program}.run(t, nil), start)
		if <-over; held != nil {
			held.Close()
		}
	})
}

func TestAnInitThatHasReportedStaysUntilItsHostLetsItGo(t *testing.T) {
	stayed := func() (stayed bool) {
		sandbox{program: connected("/probe", "exit", "42")}.runWith(t, func(c *net.UnixConn) {
			if _, err := io.ReadAll(c); err != nil {
				t.Error(err)
			}
			_, err := c.Write([]byte("x"))
			stayed = err == nil
		})
		return stayed
	}
	for range 5 { // it stays for a second alone, and a busy machine may look later than that
		if stayed() {
			return
		}
	}
	t.Error("it was gone each time when its report had come")
}

func TestControlHasPatience(t *testing.T) {
	t.Run("with a host that takes nothing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		c := dialControl(path)
		defer c.close()
		if c < 0 {
			t.Fatal("it didn't connect")
		}
		wantWithin(t, func() { c.send(make([]byte, 16<<20)) })
	})
	t.Run("with a host that has no place for one more", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Listen(fd, 0); err != nil {
			t.Fatal(err)
		}
		first, second := dialControl(path), control(-1)
		defer first.close()
		wantWithin(t, func() { second = dialControl(path) })
		if first < 0 || second >= 0 {
			t.Errorf("the connections are %d and %d", first, second)
		}
	})
	t.Run("with none", func(t *testing.T) {
		for _, path := range []string{"", filepath.Join(t.TempDir(), "missing"), os.DevNull, "/" + strings.Repeat("x", 200)} {
			c := dialControl(path)
			c.send([]byte("x"))
			c.close()
			if c != -1 {
				t.Errorf("%q became %d", path, c)
			}
		}
	})
}

// wantWithin wants the end of what waits for controlPatience once or twice.
func wantWithin(t *testing.T, wait func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() { wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Fatal("it still waits")
	}
}
