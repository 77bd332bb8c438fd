package handoff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// postedResult is the file with the result that a run has posted. The first result counts,
// and outlives this process.
type postedResult struct {
	file string
	turn chan struct{}
}

func newPostedResult(file string) postedResult { return postedResult{file, make(chan struct{}, 1)} }

// exists reports whether a result was posted.
func (p postedResult) exists() bool {
	if p.file == "" {
		return false
	}
	_, err := os.Stat(p.file)
	return err == nil
}

// lock waits until no other result is being read: reading one takes many times its size,
// and only one can be the first.
func (p postedResult) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// save writes the result, compact. If there is one, the same again is taken: a client
// repeats a request whose answer it lost. Another one is a Conflict fault.
func (p postedResult) save(result []byte) error {
	there, err := os.ReadFile(p.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := safefs.Replace(p.file, result, safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
			return fmt.Errorf("keep the result: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read the kept result: %w", err)
	case !bytes.Equal(there, result):
		return fault.New(fault.Conflict, "this run has posted another result already").
			WithHint("the first one counts; post one result, when the work is done")
	}
	return nil
}
