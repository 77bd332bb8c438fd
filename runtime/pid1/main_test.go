//go:build linux

package pid1

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestRefusesToRunAnywhereElse(t *testing.T) {
	if code := Main([]string{"init", "--", "true"}); code != exitUsage {
		t.Errorf("as an ordinary process it exited %d", code)
	}
}

func TestExitCodes(t *testing.T) {
	cases := []struct {
		name    string
		program []string
		want    int
		signal  int
		message string
	}{
		{"success", []string{"--", "/probe", "exit", "0"}, 0, 0, ""},
		{"a failure keeps its code", []string{"--", "/probe", "exit", "42"}, 42, 0, ""},
		{"a code above 128 isn't a signal", []string{"--", "/probe", "exit", "137"}, 137, 0, ""},
		{"a signal is 128 and its number", []string{"--", "/probe", "kill", "0", "9"}, 137, 9, ""},
		{"no such path", []string{"--", "/missing", "x"}, 127, 0, "/missing: not found"},
		{"no such name", []string{"--", "missing"}, 127, 0, "missing: not found in the PATH /"},
		{"no name", []string{"--", ""}, 127, 0, ": not found"},
		{"a file without the right to execute", []string{"--", "not-executable"}, 126, 0, "not-executable: permission denied"},
		{"a directory", []string{"--", "/bin"}, 126, 0, "/bin: permission denied"},
		{"a missing interpreter", []string{"--", "no-loader"}, 127, 0, "no-loader: no such file or directory (its"},
		{"a format of another world", []string{"--", "no-format"}, 126, 0, "no-format: exec format error (built for"},
		{"a name over two lines", []string{"--", "a\nb\x1b[1m"}, 127, 0, "a?b?[1m: not found"},
		{"nothing to run", []string{"--"}, 125, 0, "usage: "},
		{"no dashes", []string{"/probe", "exit", "0"}, 125, 0, "usage: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := inSandbox(t, c.program...)
			report := r.report(t)
			if r.code != c.want || report.ExitCode != c.want || report.Signal != c.signal {
				t.Errorf("exit code %d, report %+v, stderr %q", r.code, report, r.stderr)
			}
			if !strings.HasPrefix(report.StartError, c.message) || (c.message == "") != (report.StartError == "") {
				t.Errorf("start error %q, want %q", report.StartError, c.message)
			}
			want := ""
			if c.message != "" {
				want = "aod-init: " + report.StartError + "\n"
			}
			if r.stderr != want {
				t.Errorf("stderr %q, want %q", r.stderr, want)
			}
		})
	}
}

func TestHandsOverWhatItGot(t *testing.T) {
	t.Run("the environment, also what is meant for a Go program", func(t *testing.T) {
		env := []string{"GOGC=1", "GOMEMLIMIT=1MiB", "GOMAXPROCS=8", "EMPTY=", "X=a=b c"}
		r := sandbox{env: env, program: []string{"--", "/probe", "env"}}.run(t, nil)
		for _, e := range env {
			if !strings.Contains(r.stdout, e+"\n") {
				t.Errorf("%q is not in %q", e, r.stdout)
			}
		}
	})
	t.Run("a program from the container's PATH", func(t *testing.T) {
		r := sandbox{env: []string{"PATH=/nowhere:/"}, program: []string{"--", "probe", "exit", "3"}}.run(t, nil)
		if r.code != 3 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("the working directory", func(t *testing.T) {
		r := sandbox{workdir: "/bin", program: []string{"--", "../probe", "exit", "3"}}.run(t, nil)
		if r.code != 3 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a huge argument list", func(t *testing.T) {
		program := []string{"--", "/probe", "args"}
		for range 1000 {
			program = append(program, strings.Repeat("x", 1000))
		}
		program = append(program, strings.Repeat("y", 100_000))
		if r := inSandbox(t, program...); r.stdout != "1001 1100000\n" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("the foreground of a terminal", func(t *testing.T) {
		r := sandbox{engine: []string{"--tty"}, program: []string{"--", "/probe", "cat", "/proc/self/stat"}}.run(t, nil)
		if f := strings.Fields(r.stdout); len(f) < 8 || f[4] != f[7] {
			t.Errorf("group and foreground group differ in %q", r.stdout)
		}
	})
	t.Run("no report where there is no file for it", func(t *testing.T) {
		r := sandbox{noFile: true, program: []string{"--", "/probe", "exit", "3"}}.run(t, nil)
		if r.code != 3 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	})
}

func TestSignals(t *testing.T) {
	for _, s := range forwarded {
		s := s.(syscall.Signal)
		n := strconv.Itoa(int(s))
		t.Run("signal "+n+" reaches a program that catches it", func(t *testing.T) {
			r := sandbox{program: []string{"--", "/probe", "catch", n}}.run(t, signalTo(t, s))
			report := r.report(t)
			if strconv.Itoa(r.code) != n || report.Signal != 0 || report.Terminated != (s == syscall.SIGTERM || s == syscall.SIGINT) {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("a grandchild gets it too", func(t *testing.T) {
		r := sandbox{program: []string{"--", "/probe", "tree", "15"}}.run(t, signalTo(t, syscall.SIGTERM))
		if r.code != 15 || !strings.Contains(r.stdout, "caught") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a program without a handler ends by it", func(t *testing.T) {
		r := sandbox{program: []string{"--", "/probe", "wait"}}.run(t, signalTo(t, syscall.SIGTERM))
		if report := r.report(t); r.code != 143 || report.Signal != 15 || !report.Terminated {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a program that ends itself was not terminated", func(t *testing.T) {
		for _, n := range []string{"2", "9", "15"} {
			if r := inSandbox(t, "--", "/probe", "kill", "0", n); r.report(t).Terminated {
				t.Errorf("signal %s: %+v", n, r)
			}
		}
	})
	t.Run("the program can't end its init", func(t *testing.T) {
		program := []string{"--", "/probe", "kill", "1"}
		for _, s := range absorbed {
			program = append(program, strconv.Itoa(int(s.(syscall.Signal))))
		}
		if r := inSandbox(t, append(program, "9", "19")...); r.code != 0 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	})
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	r := inSandbox(t, "--", "/probe", "linger", "6")
	if report := r.report(t); r.code != 6 || report.ExitCode != 6 {
		t.Errorf("%+v", r)
	}
}

func TestReapsOrphans(t *testing.T) {
	r := inSandbox(t, "--", "/probe", "orphans", "1000")
	if r.code != 0 || !strings.HasPrefix(r.stdout, "zombies 0\n") {
		t.Errorf("%+v", r)
	}
	wantSmall(t, r.stdout)
}

func TestStaysSmall(t *testing.T) {
	wantSmall(t, inSandbox(t, "--", "/probe", "cat", "/proc/1/status").stdout)
}

// wantSmall checks init's own /proc/1/status.
func wantSmall(t *testing.T, status string) {
	t.Helper()
	wantAtMost(t, status, "VmHWM", mostMemory())
	wantAtMost(t, status, "Threads", 14) // what runtime.Spec adds for it to the limit of processes
}

// mostMemory is in KiB. Most of what aod takes are pages of its file, which the kernel can take back.
func mostMemory() int {
	if initPackage() == smallInit {
		return 6 << 10
	}
	return 48 << 10
}

func wantAtMost(t *testing.T, status, name string, limit int) {
	t.Helper()
	_, rest, _ := strings.Cut(status, name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no %s in %q", name, status)
	}
	if n, err := strconv.Atoi(fields[0]); err != nil || n > limit {
		t.Errorf("%s is %q, want at most %d", name, fields[0], limit)
	}
}

func TestTheProgramCantLookIntoInit(t *testing.T) {
	r := inSandbox(t, "--", "/probe", "cat", "/proc/1/environ", "/proc/1/mem")
	if want := "open /proc/1/environ: permission denied\nopen /proc/1/mem: permission denied\n"; r.stdout != want {
		t.Errorf("got %q, want %q", r.stdout, want)
	}
}

func TestTheKernelKillsTheProgramBeforeInit(t *testing.T) {
	if r := inSandbox(t, "--", "/probe", "oom"); r.stdout != "500\n0\n" {
		t.Errorf("the scores of the program and of init are %q", r.stdout)
	}
}

func TestReport(t *testing.T) {
	t.Run("a forged one is replaced", func(t *testing.T) {
		for range 5 {
			if r := inSandbox(t, "--", "/probe", "forge"); r.report(t).ExitCode != 4 {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("a container that ran before runs nothing", func(t *testing.T) {
		for _, left := range []string{initreport.Begun, string(initreport.Report{Version: 1, Source: initreport.Rusage}.Append(nil))} {
			r := sandbox{left: left, program: []string{"--", "/probe", "args"}}.run(t, nil)
			if r.code != exitUsage || r.stdout != "" || string(r.raw) != left || !strings.Contains(r.stderr, "ran before") {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("the start is marked", func(t *testing.T) {
		r := sandbox{program: []string{"--", "/probe", "wait"}}.run(t, signalTo(t, syscall.SIGKILL))
		if r.code != 137 || string(r.raw) != initreport.Begun {
			t.Errorf("%+v", r)
		}
	})
	t.Run("the numbers make sense", func(t *testing.T) {
		report := sandbox{engine: roomy, program: []string{"--", "/probe", "burn", "500"}}.run(t, nil).report(t)
		if report.CPUSeconds < 0.5 || report.CPUSeconds > 1.5 {
			t.Errorf("half a second of work became %v", report.CPUSeconds)
		}
		if report.Source == initreport.Rusage {
			t.Log("this engine's containers see no control groups")
			return
		}
		if report.PeakMemoryBytes < 1<<20 || report.PeakMemoryBytes > 64<<20 || report.MaxRSSBytes < 1<<20 {
			t.Errorf("%+v", report)
		}
		if report.OOMKills != 0 || report.PIDsLimitHits != 0 {
			t.Errorf("limits were hit: %+v", report)
		}
	})
}
