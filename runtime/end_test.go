package runtime_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestWhoEndedASandbox(t *testing.T) {
	report := func(r initreport.Report) []byte {
		r.Version, r.Source = initreport.Version, initreport.Rusage
		return r.Append(nil)
	}
	stop := func(ctx context.Context, b *harness, id string) error { return b.Stop(ctx, id, time.Minute) }
	kill := func(ctx context.Context, b *harness, id string) error { return b.Kill(ctx, id) }
	cases := []struct {
		name    string
		code    int
		left    []byte // in the report file
		do      func(ctx context.Context, b *harness, id string) error
		outside bool
	}{
		{"the program, by itself", 0, report(initreport.Report{}), nil, false},
		{"the program, with a code like a kill's", 137, report(initreport.Report{ExitCode: 137}), nil, false},
		{"the program, by a kill of itself", 137, report(initreport.Report{ExitCode: 137, Signal: 9}), nil, false},
		{"the program, by SIGTERM to itself", 143, report(initreport.Report{ExitCode: 143, Signal: 15}), nil, false},
		{"the kernel, for memory", enginetest.OOMKilled, []byte(initreport.Begun), nil, false},
		{"a crash of the init", 2, []byte(initreport.Begun), nil, false},
		{"somebody, who asked for it", 143, report(initreport.Report{ExitCode: 143, Signal: 15, Terminated: true}), stop, true},
		{"somebody, who asked, and the program was done in time", 0, report(initreport.Report{Terminated: true}), stop, true},
		{"somebody, by a kill", 0, []byte(initreport.Begun), kill, true},
		{"somebody, by a kill before the init began", 0, nil, kill, true},
		{"somebody, by a kill after a forgery", 0, []byte("forged"), kill, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			written := make(chan struct{})
			b := newBench(t, func(ctx context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
				if err := os.WriteFile(in(spec, "/run/aod/report"), c.left, 0o600); err != nil {
					t.Error(err)
				}
				close(written)
				if c.do != nil {
					polite(ctx, spec, nil, nil)
				}
				return c.code
			})
			s := b.start(t, b)
			<-written
			if c.do != nil {
				if err := c.do(t.Context(), b, s.ID()); err != nil {
					t.Fatal(err)
				}
			}
			if end, err := s.Wait(t.Context()); err != nil || end.Outside != c.outside {
				t.Errorf("%+v, %v", end, err)
			}
			b.remove(t, s)
		})
	}
}

func TestWhatWeStopIsNotEndedFromOutside(t *testing.T) {
	for name, left := range map[string][]byte{
		"a program that listened": initreport.Report{Version: initreport.Version, Terminated: true, Source: initreport.Rusage}.Append(nil),
		"one that we killed":      []byte(initreport.Begun),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(ctx context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
					if err := os.WriteFile(in(spec, "/run/aod/report"), left, 0o600); err != nil {
						t.Error(err)
					}
					return sleeper(ctx, spec, nil, nil)
				})
				s := b.start(t, b)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if end, err := s.Wait(ctx); err != nil || end.Outside || end.ExitCode != 137 {
					t.Errorf("%+v, %v", end, err)
				}
				b.remove(t, s)
			})
		})
	}
}

func TestAStartForgetsTheReportOfTheAttemptBefore(t *testing.T) {
	b := newBench(t, nil)
	report := b.layout.Dir + "/aod/report"
	if err := errors.Join(os.WriteFile(report, []byte(initreport.Begun), 0o600), os.Chmod(report, 0)); err != nil {
		t.Fatal(err)
	}
	s := b.start(t, b)
	if info, err := os.Stat(report); err != nil || info.Size() != 0 || info.Mode().Perm() != 0o666 {
		t.Errorf("%+v, %v", info, err)
	}
	b.remove(t, s)
}

func TestTheInitOfAProgramThatSucceededStaysUntilItsExitIsAwaited(t *testing.T) {
	gone := make(chan struct{})
	inner := enginetest.WithInit(func(context.Context, runtime.ContainerSpec, io.Writer, io.Writer) int { return 0 })
	b := newBench(t, func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		defer close(gone)
		return inner(ctx, spec, stdout, stderr)
	})
	b.spec.Mode = runtime.ModeOnce
	s := b.start(t, b)
	end, err := s.Wait(t.Context())
	if err != nil || !end.Early {
		t.Fatalf("end %+v, %v", end, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a success that was told counts, also when the run's time is over by now
		if end, err := s.Wait(over); err != nil || !end.Early {
			t.Fatalf("end %+v, %v", end, err)
		}
	}
	select {
	case <-gone:
		t.Error("it is gone, and the engine has the work of a container's end")
	default:
	}
	if exit, err := s.AwaitExit(t.Context()); err != nil || exit.Code != 0 {
		t.Errorf("exit %+v, %v", exit, err)
	}
	<-gone
	b.remove(t, s)
}
