package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

func (a *app) shellCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "shell DIR|NAME",
		Short: "Open a shell in the sandbox that a run would have",
		Long: `Open a shell in the sandbox that a run of the capsule would have: its image, user, network
and limits, /io with the input of the same flags as aod run, and the capsule API. Only the
time isn't limited. The sandbox is gone with the shell, and the exit code is the shell's.
Without a terminal the shell reads its commands from stdin.`,
		Example: `  aod shell ./csv-report --file table=sales.csv
  echo 'cat /io/input.json; python3 /capsule/run.py' | aod shell ./hello --set name=Ada`,
		Args: exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.shell(cmd.Context(), args[0], flags) },
	}
	flags.input.register(cmd.Flags())
	flags.given.register(cmd.Flags())
	return cmd
}

// findShell starts the more comfortable one of the shells that an image has.
var findShell = []string{"/bin/sh", "-c", "[ -x /bin/bash ] && exec /bin/bash; exec /bin/sh"}

func (a *app) shell(ctx context.Context, name string, flags runFlags) error {
	if flags.input.input == "-" {
		return fault.New(fault.Input, "--input - can't be used here: stdin is the shell's").
			WithHint("give the input by --input @FILE")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal has gone
	defer stop()
	c, err := a.load(name)
	if err != nil {
		return err
	}
	req, err := flags.request(ctx, c, a)
	if err != nil {
		return err
	}
	return a.withUnit(ctx, req.Unit, localOptions{upstreams: flags.given.upstreams, find: req.Find},
		func(l *local) error {
			if l.kinds[string(req.Unit.Kind)] != run.Kind(l.containers) {
				return fault.New(fault.Unsupported, "%q has no sandbox to open a shell in", c.Name)
			}
			return a.openShell(ctx, l, req)
		})
}

// openShell runs the shell to its end.
func (a *app) openShell(ctx context.Context, l *local, req orchestrator.Request) error {
	view := newView(a.stderr, req.Unit.Name, a.quiet)
	closeView := sync.OnceFunc(view.close)
	defer closeView()
	console, restore := a.console()
	defer restore()
	opened := console.Opened
	console.Opened = func() { closeView(); opened() }
	req.Extra = container.Extra{Console: console}
	req.Observe = func(e run.Event) {
		if e.Build != nil && e.Parent == "" {
			view.event(e)
		}
	}
	ended, err := l.Run(ctx, req)
	restore()
	if err != nil {
		return err
	}
	return a.shellEnd(ended.Record)
}

// console connects the shell with the streams of this program. restore gives the terminal
// back as it was; it may be called again.
func (a *app) console() (console *runtime.Console, restore func()) {
	console = &runtime.Console{
		Command: findShell, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Opened: func() {},
	}
	in, isFile := a.stdin.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(a.stdout.fd) {
		return console, func() {}
	}
	console.Command = append([]string{"/bin/sh", "-c", "export TERM=$0; " + findShell[2]},
		cmp.Or(os.Getenv("TERM"), "xterm"))
	console.Terminal = true
	console.Size = func() runtime.TerminalSize { return sizeOf(a.stdout.fd) }
	resized, stop := resizes()
	console.Resized = resized
	var before *term.State
	console.Opened = func() { before, _ = term.MakeRaw(int(in.Fd())) } // else keys come line by line
	return console, sync.OnceFunc(func() {
		stop()
		if before != nil {
			_ = term.Restore(int(in.Fd()), before)
		}
	})
}

func sizeOf(fd int) runtime.TerminalSize {
	columns, rows, err := term.GetSize(fd)
	if err != nil || columns <= 0 || rows <= 0 {
		return runtime.TerminalSize{Rows: 24, Columns: 80}
	}
	return runtime.TerminalSize{Rows: uint(rows), Columns: uint(columns)}
}

// resizes tells when the terminal's size has changed, until it is stopped.
func resizes() (<-chan struct{}, func()) {
	signals, resized, done := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{})
	notifyResize(signals)
	go func() {
		for {
			select {
			case <-signals:
				select {
				case resized <- struct{}{}:
				default: // one is to come already, and it asks for the newest size
				}
			case <-done:
				return
			}
		}
	}()
	return resized, func() {
		signal.Stop(signals)
		close(done)
	}
}

// shellEnd reports what isn't the shell's own word, and passes its exit code on.
func (a *app) shellEnd(record api.Record) error {
	switch record.Outcome {
	case api.Success:
		return nil
	case api.CapsuleError:
		return exitError(*record.ExitCode)
	case api.StartFailed:
		return fault.New(fault.Capsule, "the image of %q has no shell", record.Unit).
			WithHint("a shell needs /bin/sh in the image: build it FROM aod/base or debian while you look, or see a " +
				"run's directory with `aod run --keep`")
	}
	return a.report(record, "", asOutput, nil)
}
