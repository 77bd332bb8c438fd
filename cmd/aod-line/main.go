//go:build linux

// Command aod-line runs in the sandboxes of an engine that doesn't see the orchestrator's
// files, beside PID 1 and the program, and as the same user. It is the far end of the
// tunnel (runtime/tunnel): it listens on the capsule API's socket and tells how much disk the
// run uses.
//
// It is a program of its own, so that PID 1 stays as small as it is.
package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/runtime/tunnel"
)

func main() {
	if err := run(); err != nil {
		_, _ = os.Stderr.WriteString("aod-line: " + err.Error() + "\n")
		os.Exit(1)
	}
}

func run() error {
	// The program has the same user id, and could make us say what it likes.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return tunnel.Answer(stdio{os.Stdin, os.Stdout}, tunnel.Socket, measure)
}

// stdio is the two as one.
type stdio struct {
	io.Reader
	io.Writer
}

// Close lets a read that is under way end.
func (stdio) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }
