package handoff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// kept is the file with the result that a run has posted: the first one counts, and
// outlives this process.
type kept struct {
	file string
	turn chan struct{}
}

func newKept(file string) kept { return kept{file, make(chan struct{}, 1)} }

// there reports whether a result was kept.
func (k kept) there() bool {
	if k.file == "" {
		return false
	}
	_, err := os.Stat(k.file)
	return err == nil
}

// enter waits for the caller's turn: a result takes many times its size while it is read,
// and only one of them can be the first.
func (k kept) enter(ctx context.Context) (leave func(), err error) {
	select {
	case k.turn <- struct{}{}:
		return func() { <-k.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep writes the result, compact, unless one is there. The same one again is welcome: a
// client repeats after an answer that it lost.
func (k kept) keep(result []byte) error {
	there, err := os.ReadFile(k.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k.write(result)
	case err != nil:
		return fmt.Errorf("read the kept result: %w", err)
	case !bytes.Equal(there, result):
		return fault.New(fault.Conflict, "this run has posted another result already").
			WithHint("the first one counts; post one result, when the work is done")
	}
	return nil
}

// write puts the file into place whole.
func (k kept) write(result []byte) error {
	if err := safefs.Replace(k.file, result, safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	return nil
}
