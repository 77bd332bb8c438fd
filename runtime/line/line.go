//go:build linux

package line

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// Main talks with the near end over stdin and stdout until that ends the connection. It returns
// the program's exit code, and has written to stderr what went wrong.
func Main() int {
	if err := run(); err != nil {
		_, _ = os.Stderr.WriteString("aod-line: " + err.Error() + "\n") // nothing else could be done
		return 1
	}
	return 0
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
