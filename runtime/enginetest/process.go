package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/runtime"
)

// Process returns a program that runs what a container would, as a process of this machine: a run of bash, which
// finds the sources of the mounts where it would find their targets. Scripts are files of the image, by their paths. It
// shows what comes of files, streams and exit codes; the walls and the limits of a sandbox it doesn't have.
func Process(scripts map[string]string) Program {
	return WithInit(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		outside := outsideOf(spec.Mounts)
		argv := spec.Cmd
		if at := slices.Index(spec.Entrypoint, "--"); at >= 0 {
			argv = slices.Concat(spec.Entrypoint[at+1:], argv)
		}
		if len(argv) > 1 && strings.HasPrefix(argv[1], "/") {
			script, known := scripts[argv[1]]
			if raw, err := os.ReadFile(outside.Replace(argv[1])); err == nil && !known {
				script = string(raw)
			}
			argv = slices.Concat([]string{argv[0], "-c", script}, argv[1:])
		}
		cmd := exec.CommandContext(ctx, argv[0])
		for _, arg := range argv[1:] {
			cmd.Args = append(cmd.Args, outside.Replace(arg))
		}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		for _, entry := range spec.Env {
			cmd.Env = append(cmd.Env, outside.Replace(entry))
		}
		cmd.Dir = outside.Replace(cmp.Or(spec.WorkingDir, "/"))
		cmd.Stdout, cmd.Stderr = stdout, stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		return ended(cmd, redirect(cmd, spec.Entrypoint, outside), stderr)
	})
}

// outsideOf puts the source of each mount where a text has its target.
func outsideOf(mounts []runtime.Mount) *strings.Replacer {
	mounts = slices.SortedFunc(slices.Values(mounts), func(a, b runtime.Mount) int { return len(b.Target) - len(a.Target) })
	var pairs []string
	for _, m := range mounts {
		pairs = append(pairs, m.Target, strings.Replace(m.Source, "/proc/self/", fmt.Sprintf("/proc/%d/", os.Getpid()), 1))
	}
	return strings.NewReplacer(pairs...)
}

// redirect does what the init is told of stdin and stdout.
func redirect(cmd *exec.Cmd, options []string, outside *strings.Replacer) (err error) {
	if at := slices.Index(options, "-stdin"); at >= 0 {
		cmd.Stdin, err = os.Open(outside.Replace(options[at+1]))
	}
	if at := slices.Index(options, "-stdout"); at >= 0 && err == nil {
		cmd.Stdout, err = os.OpenFile(outside.Replace(options[at+1]), os.O_WRONLY|os.O_APPEND, 0)
	}
	return err
}

// ended runs a command to its end, unless it has failed before.
func ended(cmd *exec.Cmd, err error, stderr io.Writer) int {
	if err == nil {
		err = cmd.Run()
	}
	for _, stream := range []any{cmd.Stdin, cmd.Stdout} {
		if file, ok := stream.(*os.File); ok && file != nil {
			_ = file.Close() // what was to be written has been
		}
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() { //nolint:misspell // the name is the standard library's
			return 128 + int(status.Signal())
		}
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 127
	}
	return 0
}
