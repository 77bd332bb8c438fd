package capsules

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
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// ShellCommand is `aod shell`.
func ShellCommand(env *cli.Env) *cobra.Command {
	var flags runcmd.Flags
	cmd := &cobra.Command{
		Use:   "shell DIR|NAME",
		Short: "Open a shell in the sandbox that a run would have",
		Long: `Open a shell in the sandbox that a run of the capsule would have: its image, user, network
and limits, /io with the input of the same flags as aod run, and the capsule API. Only the
time isn't limited, and the secrets of the unit's program aren't in the environment: everybody
who may look at the container would see them. The sandbox is gone with the shell, and the exit
code is the shell's.
Without a terminal the shell reads its commands from stdin.`,
		Example: `  aod shell ./csv-report --file table=sales.csv
  echo 'cat /io/input.json; python3 /capsule/run.py' | aod shell ./hello --set name=Ada`,
		Args: cli.Exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error { return shell(cmd.Context(), env, args[0], flags) },
	}
	flags.Input.Register(cmd.Flags())
	flags.Given.Register(cmd.Flags())
	flags.Sources.Register(cmd.Flags())
	return cmd
}

// findShell starts the more comfortable one of the shells that an image has.
var findShell = []string{"/bin/sh", "-c", "[ -x /bin/bash ] && exec /bin/bash; exec /bin/sh"}

func shell(ctx context.Context, env *cli.Env, name string, flags runcmd.Flags) error {
	if flags.Input.Text == "-" {
		return fault.New(fault.Input, "--input - can't be used here: stdin is the shell's").
			WithHint("give the input by --input @FILE")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal has gone
	defer stop()
	c, err := lookup.Load(env, name)
	if err != nil {
		return err
	}
	req, err := flags.Request(ctx, c, env)
	if err != nil {
		return err
	}
	return flags.Sources.WithUnit(ctx, env, req, func(ctx context.Context, l *cli.Local) error {
		if l.Kinds[string(req.Unit.Kind)] != run.Kind(l.Containers) {
			return fault.New(fault.Unsupported, "%q has no sandbox to open a shell in", c.Name).
				WithHint("it is of the kind %s; aod shell is for units that run in containers", c.Kind)
		}
		return openShell(ctx, env, l, req)
	})
}

// openShell runs the shell to its end.
func openShell(ctx context.Context, env *cli.Env, l *cli.Local, req orchestrator.Request) error {
	view := progress.New(env.Err, req.Unit.Name, env.Quiet)
	closeView := sync.OnceFunc(view.Close)
	defer closeView()
	console, restore := console(env)
	defer restore()
	opened := console.Opened
	console.Opened = func() { closeView(); opened() }
	req.Extra = container.Extra{Console: console}
	req.Observe = func(e run.Event) {
		if e.Build != nil && e.Parent == "" {
			view.Event(e)
		}
	}
	ended, err := l.Runs.Run(ctx, req)
	restore()
	if err != nil {
		return err
	}
	return shellEnd(env, ended.Record)
}

// console connects the shell with the streams of this program. restore gives the terminal
// back as it was; it may be called again.
func console(env *cli.Env) (console *runtime.Console, restore func()) {
	console = &runtime.Console{
		Command: findShell, Stdin: env.In, Stdout: env.Out, Stderr: env.Err,
		Opened: func() {},
	}
	in, isFile := env.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(env.Out.FD) {
		return console, func() {}
	}
	console.Command = append([]string{"/bin/sh", "-c", "export TERM=$0; " + findShell[2]},
		cmp.Or(os.Getenv("TERM"), "xterm"))
	console.Terminal = true
	console.Size = func() runtime.TerminalSize { return sizeOf(env.Out.FD) }
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
	ui.NotifyResize(signals)
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
func shellEnd(env *cli.Env, record api.Record) error {
	switch record.Outcome {
	case api.Success:
		return nil
	case api.CapsuleError:
		return ui.ExitError(*record.ExitCode)
	case api.StartFailed:
		return fault.New(fault.Capsule, "the image of %q has no shell", record.Unit).
			WithHint("a shell needs /bin/sh in the image: build it FROM aod/base or debian while you look, or see a " +
				"run's directory with `aod run --keep`")
	}
	return runcmd.Report(env, record, "", runcmd.AsOutput, nil)
}
