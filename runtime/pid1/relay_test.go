//go:build linux

package pid1

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

func TestRelayCarriesEverything(t *testing.T) {
	const big = "20000000"
	for _, c := range []struct {
		name        string
		answer      func(*net.UnixConn)
		connections string
		size        string
	}{
		{"nothing at all", echo, "1", "0"},
		{"one byte", echoAtTheEnd, "1", "1"},
		{"20 MB there, then back", echoAtTheEnd, "1", big},
		{"20 MB both ways at once", echo, "1", big},
		{"as many connections as there are places", echo, "64", "1000000"},
		{"more connections than there are places", echoAtTheEnd, "100", "200000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newAPIServer(t, c.answer).start(t).run(t, "round-trips", c.connections, c.size)
			if !strings.HasPrefix(r.stdout, "done\n") || r.stderr != "" {
				t.Errorf("%+v", r)
			}
			wantAtMost(t, r.stdout, "VmHWM", 6<<10)
		})
	}
}

func TestRelayPassesOnTheServersEnd(t *testing.T) {
	said, heard := make(chan string, 1), make(chan struct{})
	var called atomic.Int32
	r := newAPIServer(t, func(c *net.UnixConn) {
		if called.Add(1) > 1 {
			<-heard
			return
		}
		defer close(heard)
		fmt.Fprint(c, "hello")
		c.CloseWrite()
		all, _ := io.ReadAll(c)
		said <- string(all)
	}).start(t).run(t, "hear")
	if got := <-said; got != "and hello to you" || r.stdout != "heard \"hello\" <nil>\n" {
		t.Errorf("the server heard %q; %+v", got, r)
	}
}

func TestRelayHoldsAsManyAsThereArePlaces(t *testing.T) {
	const clients, places = 100, 64
	var open, most atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	r := newAPIServer(t, func(c *net.UnixConn) {
		n := open.Add(1)
		defer open.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == places {
			once.Do(func() { time.AfterFunc(100*time.Millisecond, func() { close(full) }) }) // time for one too many
		}
		<-full // nobody is answered before all places are taken
		echoAtTheEnd(c)
	}).start(t).run(t, "round-trips", strconv.Itoa(clients), "1000")
	if most.Load() != places || !strings.HasPrefix(r.stdout, "done\n") {
		t.Errorf("at most %d at once; %+v", most.Load(), r)
	}
}

func TestRelayOutlivesItsServer(t *testing.T) {
	// The patience is two seconds, and a busy machine may need them for itself: one success is enough.
	ofFive := func(t *testing.T, succeeds func() (result, bool)) {
		t.Helper()
		var r result
		for range 5 {
			var ok bool
			if r, ok = succeeds(); ok {
				return
			}
		}
		t.Errorf("%+v", r)
	}
	t.Run("a server that comes within the patience", func(t *testing.T) {
		ofFive(t, func() (result, bool) {
			s := newAPIServer(t, echoAtTheEnd)
			r := sandbox{api: s.dir, program: []string{"--", "/probe", "wait-for-end"}}.run(t, func(string) { s.start(t) })
			return r, strings.HasPrefix(r.stdout, "ready\n\"anybody?\" false")
		})
	})
	t.Run("a server that has left its socket behind, and comes back", func(t *testing.T) {
		ofFive(t, func() (result, bool) {
			s := newAPIServer(t, echoAtTheEnd).start(t)
			s.listener.(*net.UnixListener).SetUnlinkOnClose(false)
			s.stop()
			r := sandbox{api: s.dir, program: []string{"--", "/probe", "wait-for-end"}}.run(t, func(string) {
				if err := os.Remove(filepath.Join(s.dir, "aod.sock")); err != nil {
					t.Error(err)
				}
				s.start(t)
			})
			return r, strings.HasPrefix(r.stdout, "ready\n\"anybody?\" false")
		})
	})
	t.Run("no server ever", func(t *testing.T) {
		r := newAPIServer(t, nil).run(t, "wait-for-end")
		text, found := strings.CutPrefix(r.stdout, "ready\n\"\" true ")
		if seconds, err := strconv.Atoi(strings.TrimSuffix(text, "\n")); !found || err != nil || seconds < 2 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a server that hangs up", func(t *testing.T) {
		ofFive(t, func() (result, bool) {
			r := newAPIServer(t, func(*net.UnixConn) {}).start(t).run(t, "wait-for-end")
			if !strings.HasPrefix(r.stdout, "ready\n\"\" ") {
				t.Errorf("%+v", r)
			}
			return r, strings.HasSuffix(r.stdout, " 0\n") // as it ends without waiting
		})
	})
	t.Run("clients that break off", func(t *testing.T) {
		r := newAPIServer(t, echo).start(t).run(t, "reset", "64")
		if !strings.HasPrefix(r.stdout, "done\n") {
			t.Errorf("%+v", r)
		}
	})
}

func TestRelayLeavesNothingBehind(t *testing.T) {
	r := newAPIServer(t, echoAtTheEnd).start(t).run(t, "many", "5000")
	if !strings.HasPrefix(r.stdout, "done\n") {
		t.Errorf("%.500s %s", r.stdout, r.stderr)
	}
	wantAtMost(t, r.stdout, "VmHWM", 6<<10)
}

func TestRelayEndsWithTheProgram(t *testing.T) {
	s := newAPIServer(t, ignore).start(t)
	start := time.Now()
	r := s.run(t, "leave-open", "9", "80")
	if report := r.report(t); r.code != 9 || report.ExitCode != 9 || time.Since(start) > testkit.Patience {
		t.Errorf("%+v", r)
	}
}

func TestRelayWhereTheProcessLimitIsReached(t *testing.T) {
	for range bombs {
		s := newAPIServer(t, echo).start(t)
		r := sandbox{engine: roomy, api: s.dir, program: []string{"--", "/probe", "bomb-and-flood", "7"}}.run(t, nil)
		if report := r.report(t); r.code != 7 || report.PIDsLimitHits == 0 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	}
}

// Most sandboxes get no networking of the engine's at all (runtime/docker/create.go).
func TestRelayWithoutTheEnginesNetworking(t *testing.T) {
	engine, f := dockertest.Require(t), need(t)
	s := newAPIServer(t, echoAtTheEnd).start(t)
	hosts := filepath.Join(s.dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	id, err := engine.Create(ctx, runtime.ContainerSpec{
		Image:      f.image,
		Entrypoint: []string{"/run/aod/init", "--"},
		Cmd:        []string{"/probe", "many", "1"},
		User:       "65532:65532",
		Labels:     map[string]string{"aod.test": "init"},
		Network:    "none",
		Mounts: []runtime.Mount{
			{Source: s.dir, Target: "/run/aod", ReadOnly: true},
			{Source: filepath.Join(f.dir, "init"), Target: "/run/aod/init", ReadOnly: true},
			{Source: hosts, Target: "/etc/hosts", ReadOnly: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Remove(context.WithoutCancel(ctx), id)
	streams, err := engine.Attach(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	if err := engine.Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	go io.Copy(os.Stderr, streams.Stderr) // else its pipe would fill
	if out, err := io.ReadAll(streams.Stdout); err != nil || !strings.HasPrefix(string(out), "done\n") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRelayHasItsPort(t *testing.T) {
	if r := inSandbox(t, "--", "/probe", "take-port"); !strings.Contains(r.stdout, "address already in use") {
		t.Errorf("%+v", r)
	}
}

// An answer comes in parts, of which none waits until the one before it is acknowledged.
func TestConnectionsOfProgramsDelayNothing(t *testing.T) {
	listener := listen(&syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	defer syscall.Close(listener)
	at, err := syscall.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	program, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", at.(*syscall.SockaddrInet4).Port))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	accepted, errno := acceptFrom(listener)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer syscall.Close(accepted)
	if on, err := syscall.GetsockoptInt(accepted, syscall.IPPROTO_TCP, syscall.TCP_NODELAY); err != nil || on == 0 {
		t.Errorf("%d, %v", on, err)
	}
}
