//go:build linux

package pid1

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// parked is a command whose init waits for its host.
func parked(program ...string) []string {
	return append([]string{"-park", initreport.ControlPath, "--"}, program...)
}

// startWith is a host that sends one message, and waits for the end.
func startWith(t *testing.T, m initbin.StartMessage) func(*net.UnixConn) {
	return func(c *net.UnixConn) { startParked(t, c, m) }
}

// startParked returns the report.
func startParked(t *testing.T, c *net.UnixConn, m initbin.StartMessage) string {
	t.Helper()
	raw, err := m.Append(nil)
	if err == nil {
		_, err = c.Write(raw)
	}
	if err != nil {
		t.Error(err)
	}
	report, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(report)
}

func TestParkStartsWhatItIsTold(t *testing.T) {
	t.Run("with files, arguments and an environment", func(t *testing.T) {
		dir := newAPIServer(t, nil).dir
		out := filepath.Join(dir, "out")
		writeFile(t, filepath.Join(dir, "in"), "what comes in", 0o644)
		writeFile(t, out, "", 0o666)
		if err := os.Chmod(out, 0o666); err != nil { // whatever the umask
			t.Fatal(err)
		}
		s := sandbox{
			api:     dir,
			env:     []string{"A=old", "KEPT=1", "PATH=/nowhere"},
			out:     out,
			program: parked("probe", "tell", "first"),
		}
		var report string
		r := s.runWith(t, func(c *net.UnixConn) {
			report = startParked(t, c, initbin.StartMessage{
				Stdin: "/run/aod/in", Stdout: "/out", Args: []string{"", "a b"}, Env: []string{"A=new", "B==", "PATH=/", "A=newer"},
			})
		})
		raw, err := os.ReadFile(out)
		told, env, _ := strings.Cut(string(raw), "\n")
		if err != nil || told != `["first" "" "a b"] "what comes in" <nil>` {
			t.Errorf("it was told %q, %v; %+v", raw, err, r)
		}
		for _, entry := range []string{`"A=newer"`, `"B=="`, `"KEPT=1"`, `"PATH=/"`} {
			name, _, _ := strings.Cut(entry, "=")
			if !strings.Contains(env, entry) || strings.Count(env, name+"=") != 1 {
				t.Errorf("%s is not the only one in %s", entry, env)
			}
		}
		if got := r.report(t); got.StdinTaken != int64(len("what comes in")) || report != string(r.raw) {
			t.Errorf("the host was told %s; %+v", report, r)
		}
	})
	t.Run("with nothing to change", func(t *testing.T) {
		r := sandbox{program: parked("/probe", "exit", "42")}.runWith(t, startWith(t, initbin.StartMessage{}))
		if r.report(t).ExitCode != 42 || r.code != 42 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("or says why it can't", func(t *testing.T) {
		for _, m := range []initbin.StartMessage{{}, {Stdin: "/missing"}} {
			var report string
			r := sandbox{program: parked("/missing")}.runWith(t, func(c *net.UnixConn) { report = startParked(t, c, m) })
			if r.code != 127 || r.report(t).StartError == "" || report != string(r.raw) {
				t.Errorf("told %s; %+v", report, r)
			}
		}
	})
	t.Run("and the program finds nobody where init did", func(t *testing.T) {
		r := sandbox{program: parked("/probe", "connect", initreport.ControlPath)}.runWith(t, startWith(t, initbin.StartMessage{}))
		if !strings.HasSuffix(r.stdout, "connection refused\n") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("and the program can't use the connection", func(t *testing.T) {
		r := sandbox{program: parked("/probe", "descriptors", "self", "1")}.runWith(t, startWith(t, initbin.StartMessage{}))
		if strings.Contains(r.stdout, "socket") || !strings.HasSuffix(r.stdout, "\n1 open /proc/1/fd: permission denied\n") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("and passes signals on then", func(t *testing.T) {
		dir := newAPIServer(t, nil).dir
		listener := listenForInit(t, dir)
		told := make(chan string, 1)
		go func() {
			defer close(told)
			c, err := meetInit(listener)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			told <- startParked(t, c, initbin.StartMessage{Args: []string{"15"}})
		}()
		r := sandbox{api: dir, program: parked("/probe", "catch")}.run(t, signalTo(t, syscall.SIGTERM))
		if report := r.report(t); <-told != string(r.raw) || r.code != 15 || !report.Terminated {
			t.Errorf("%+v", r)
		}
	})
}

func TestParkWaits(t *testing.T) {
	var status, left string
	s := sandbox{engine: roomiest, program: parked("/probe", "orphans", "10")}
	r := s.runWith(t, func(c *net.UnixConn) {
		status = beside(t, "/probe", "cat", "/proc/1/status")
		left = beside(t, "/probe", "orphans", "1000")
		signalTo(t, syscall.SIGWINCH)(containerName(t))
		startParked(t, c, initbin.StartMessage{})
	})
	wantSmall(t, status)
	if !strings.HasPrefix(left, "zombies 0\n") {
		t.Errorf("while it waited: %s", left)
	}
	if r.report(t).ExitCode != 0 || !strings.HasPrefix(r.stdout, "zombies 0\n") {
		t.Errorf("%+v", r)
	}
	wantSmall(t, r.stdout)
}

func TestParkEndsBySignals(t *testing.T) {
	for _, c := range []struct {
		signal     syscall.Signal
		terminated bool
	}{{syscall.SIGTERM, true}, {syscall.SIGINT, true}, {syscall.SIGHUP, false}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			var told []byte
			r := sandbox{program: parked("/probe", "exit", "42")}.runWith(t, func(conn *net.UnixConn) {
				signalTo(t, c.signal)(containerName(t))
				told, _ = io.ReadAll(conn)
			})
			report := r.report(t)
			if r.code != 128+int(c.signal) || report.Signal != int(c.signal) || report.Terminated != c.terminated || report.Abandoned {
				t.Errorf("%+v", r)
			}
			if string(told) != string(r.raw) || r.stderr != "" {
				t.Errorf("the host was told %s; %+v", told, r)
			}
		})
	}
}

func TestParkEndsWithItsHost(t *testing.T) {
	for name, said := range map[string]string{
		"that says nothing":         "",
		"that ends within a length": "\x00\x00",
		"that ends before a start":  "\x00\x00\x00\x05\x00\x000\x00",
	} {
		t.Run(name, func(t *testing.T) {
			r := sandbox{program: parked("/probe", "exit", "42")}.runWith(t, func(c *net.UnixConn) { fmt.Fprint(c, said) })
			if report := r.report(t); r.code != 125 || !report.Abandoned || report.StartError != "" || r.stderr != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("that ends its half, and is told", func(t *testing.T) {
		var told []byte
		r := sandbox{program: parked("/probe", "exit", "42")}.runWith(t, func(c *net.UnixConn) {
			c.CloseWrite()
			told, _ = io.ReadAll(c)
		})
		if r.code != 125 || !r.report(t).Abandoned || string(told) != string(r.raw) {
			t.Errorf("told %s; %+v", told, r)
		}
	})
	t.Run("that isn't there", func(t *testing.T) {
		r := sandbox{api: newAPIServer(t, nil).dir, program: parked("/probe", "exit", "42")}.run(t, nil)
		if report := r.report(t); r.code != 125 || report.StartError != "" || !report.Abandoned || r.stdout != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("that sends what isn't a start", func(t *testing.T) {
		var told []byte
		r := sandbox{program: parked("/probe", "exit", "42")}.runWith(t, func(c *net.UnixConn) {
			fmt.Fprint(c, framed("\x00\x009\x00"))
			told, _ = io.ReadAll(c)
		})
		if report := r.report(t); r.code != 125 || !strings.HasPrefix(report.StartError, "the start message") || string(told) != string(r.raw) {
			t.Errorf("told %s; %+v", told, r)
		}
	})
}

func TestParkStaysSmall(t *testing.T) {
	long := strings.Repeat("x", initreport.MaxStartBytes/9) // the kernel takes no text of more than 128 KiB
	for name, m := range map[string]initbin.StartMessage{
		"with large arguments":     {Args: slices.Repeat([]string{long}, 8)},
		"with a large environment": {Env: environment(8, long)},
		"with many arguments":      {Args: slices.Repeat([]string{"x"}, initreport.MaxStartTexts-3)},
		"with many entries":        {Env: environment(initreport.MaxStartTexts-3, "x")},
		"with as much as it takes": {Env: environment(initreport.MaxStartTexts-3, long[:initreport.MaxStartBytes/initreport.MaxStartTexts-10])},
	} {
		t.Run(name, func(t *testing.T) {
			r := sandbox{program: parked("/probe", "orphans", "10")}.runWith(t, startWith(t, m))
			wantSmall(t, r.stdout)
		})
	}
}

func environment(n int, value string) (env []string) {
	for i := range n {
		env = append(env, fmt.Sprintf("N%d=%s", i, value))
	}
	return env
}

func TestParkBeforeAForkBomb(t *testing.T) {
	for range bombs {
		r := sandbox{engine: roomy, program: parked("/probe", "bomb", "7")}.runWith(t, startWith(t, initbin.StartMessage{}))
		if report := r.report(t); r.code != 7 || report.PIDsLimitHits == 0 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	}
}
