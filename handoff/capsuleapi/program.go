package capsuleapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// invocation is what a program is to work on.
type invocation struct {
	runInfo
	Input json.RawMessage `json:"input,omitempty"`
}

const (
	// headerRemaining has the number of further runs that the program may serve. headerRun
	// has the id that the program puts into its EndLine. A program that gets neither ends
	// with its run.
	headerRemaining = "AOD-Remaining"
	headerRun       = "AOD-Run"
)

// EndLine is the line that ends the output of one run, on stdout and on stderr, where the
// program may serve further runs.
func EndLine(run string) string { return "\x1eaod-end " + run + "\x1e" }

// program is the program of a run, which asks for its invocation and posts a result.
type program struct {
	responder   responder
	caller      handoff.Caller
	resultBytes int64

	asked  atomic.Bool
	result postedResult
	posted chan struct{} // closed when there is a result that was posted
	post   func()
}

func newProgram(s responder, caller handoff.Caller, resultBytes int64) *program {
	posted := make(chan struct{})
	p := &program{
		responder: s, caller: caller, resultBytes: resultBytes, result: newPostedResult(caller.Result),
		posted: posted, post: sync.OnceFunc(func() { close(posted) }),
	}
	if p.result.exists() { // an earlier process got it
		p.post()
	}
	return p
}

// getInvocation answers at once: whoever has a handler has a run.
func (p *program) getInvocation(w http.ResponseWriter, r *http.Request) error {
	if p.left() { // nobody waits here: somebody did in an earlier process
		return unclaimed(w, r)
	}
	p.asked.Store(true)
	if p.caller.Reuse && p.caller.Remaining > 0 {
		w.Header().Set(headerRemaining, strconv.Itoa(p.caller.Remaining))
		w.Header().Set(headerRun, p.caller.Run)
	}
	return p.responder.reply(w, r, http.StatusOK, invocation{infoOf(p.caller), p.caller.Input})
}

// left reports whether the program may have gone on to another run.
func (p *program) left() bool {
	return p.caller.Reuse && pause.Over(p.posted)
}

// postResult saves a result. Nobody checks it here: at the end of the run it is judged like
// a result that was written to a file.
func (p *program) postResult(w http.ResponseWriter, r *http.Request) error {
	if p.caller.Result == "" {
		return fault.New(fault.NotFound, "results are not taken here").WithHint("write the result to /io/output.json")
	}
	if p.caller.Remaining > 0 && !p.asked.Load() { // the result is that of the run before
		return fault.New(fault.Conflict, "the program has not asked for this run yet").
			WithHint("GET /invocation comes first")
	}
	unlock, err := p.result.lock(r.Context())
	if err != nil {
		return err
	}
	defer unlock()
	result, err := readObject(w, r, p.resultBytes)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	if err := p.result.save(result.JSON()); err != nil {
		return err
	}
	p.post()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

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
