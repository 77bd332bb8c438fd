package workers

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// relay passes on what the program of a run asks at its worker, as soon as there is what answers it.
type relay struct {
	open    chan struct{} // closed when there is; what follows is set before
	handler *capsuleapi.Handler
	run     *run.Run
	life    context.Context //nolint:containedctx // of the attempt in this process

	asking sync.Mutex
	asked  map[string]*asked // by the addresses of the questions
}

func newRelay() *relay { return &relay{open: make(chan struct{}), asked: map[string]*asked{}} }

// answer answers a request of the program, with the address as it came there.
func (l *lease) answer(w http.ResponseWriter, r *http.Request, path string) error {
	select {
	case <-l.relay.open:
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath, inner.RequestURI, inner.Host = path, "", "", "127.0.0.1:7070"
	inner.Header.Del("Authorization") // the worker's
	if own := r.Header.Get(wire.HeaderAuthorization); own != "" {
		inner.Header.Set("Authorization", own)
		inner.Header.Del(wire.HeaderAuthorization)
	}
	l.relay.handler.ServeHTTP(ledWriter{w, r.Context()}, inner)
	return nil
}

// ledWriter breaks off the answer that something failed where this process has let go of the run meanwhile: that may be
// why, and the next process answers when it is asked again.
type ledWriter struct {
	http.ResponseWriter
	led context.Context //nolint:containedctx // of the request
}

// WriteHeader is http.ResponseWriter's.
func (w ledWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest && w.led.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w ledWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// farAPI is the capsule API of an attempt at a worker.
type farAPI struct {
	x     *execution
	lease *lease
	calls run.ChildRuns
	stop  func() bool
	letGo context.CancelCauseFunc
}

// open has the program's requests answered, from when it runs.
func (a *farAPI) open(ctx context.Context) error {
	if a.calls != nil {
		return nil
	}
	r, dir := a.x.run, a.x.run.AttemptDir()
	placed, incoming := filepath.Join(dir, "placed"), a.lease.incomingDir()
	if err := errors.Join(os.MkdirAll(placed, 0o700), os.MkdirAll(incoming, 0o700)); err != nil {
		return run.StorageFault(err)
	}
	a.calls = r.Calls()
	caller := r.Caller(r.Deadline(r.Limits.Timeout))
	caller.Outgoing, caller.Incoming, caller.Placed = filepath.Join(dir, "outgoing"), incoming, placed
	caller.Transfer, caller.Input = transfers{a.x, a.lease}, nil
	var mounts []capsuleapi.Mount
	for _, m := range a.calls.Mounts() {
		if m.Path != capsuleapi.ProxyPath { // its door is the worker's
			mounts = append(mounts, m)
		}
	}
	handler := capsuleapi.NewHandler(caller, a.calls, r.Handoffs, a.x.f.logger, mounts...)
	handler.Remember(a.calls.Keys()...)
	relay := a.lease.relay
	relay.handler, relay.run = handler, r
	relay.life, a.letGo = context.WithCancelCause(ctx)
	a.stop = context.AfterFunc(ctx, func() { a.calls.CancelAll(context.Cause(ctx)) })
	if a.lease.talk != nil {
		a.lease.talk.begin(r)
	}
	close(relay.open)
	return nil
}

// close ends the API and every live call.
func (a *farAPI) close(cause error) {
	if a.calls == nil {
		return
	}
	a.stop()
	a.letGo(cause)
	if a.lease.talk != nil {
		a.lease.talk.end(a.x.run)
	}
	a.calls.End(cause)
	if !errors.Is(cause, runtime.ErrDetach) {
		_ = a.lease.relay.handler.Close()
	}
}

// note records what the program asked in vain, as far as its failure doesn't tell it.
func (a *farAPI) note(failure *api.RunError) {
	if a.calls == nil {
		return
	}
	told := ""
	if failure != nil {
		told = failure.Message
	}
	for _, warning := range a.lease.relay.handler.Warnings(told) {
		a.x.run.Warn("%s", warning)
	}
}
