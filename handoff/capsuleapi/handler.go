package capsuleapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const maxRequests = 256 // of one run at a time; most of them wait

// Handler is the capsule API of one run, over the run's broker. It may serve any number of
// connections.
type Handler struct {
	responder responder
	broker    *handoff.Broker
	requests  chan struct{}
	pace      pace
	handoffs  handoffs
	program   *program
	mux       *http.ServeMux
	proxy     http.Handler // of requests that are for others
	closers   []io.Closer  // handlers of mounts
	closed    func() error
}

// NewHandler returns the handler for what one run asks, with the mounts beside the paths of
// its own. A nil logger drops what it gets.
func NewHandler(
	caller handoff.Caller, runs handoff.Runs, limits handoff.Limits, logger *slog.Logger, mounts ...Mount,
) *Handler {
	broker := handoff.NewBroker(caller, runs, limits, logger)
	respond := responder{newResponder(logger).log.With("run", caller.Run)}
	h := &Handler{
		responder: respond,
		broker:    broker,
		requests:  make(chan struct{}, maxRequests),
		pace:      newPace(),
		program:   newProgram(respond, broker.Caller(), broker.Limits().ResultBytes),
		handoffs: handoffs{
			responder: respond, broker: broker, runs: runs,
			bodyBytes: broker.Limits().ArgsBytes + httpwire.SmallBody, // for what stands around the arguments
		},
		proxy: respond.handlerOf(unknown),
		mux:   http.NewServeMux(),
	}
	h.serveOwn(runs, mounts)
	h.mount(mounts)
	h.closed = sync.OnceValue(h.close)
	return h
}

// Remember is Broker.Remember for the run's broker.
func (h *Handler) Remember(keys ...string) { h.broker.Remember(keys...) }

// Warnings tell what the run asked in vain, and what its error doesn't tell. They are for its record, when it has
// ended.
func (h *Handler) Warnings(told string) []string {
	var warnings []string
	if names := h.handoffs.ignored.list(); names != "" {
		warnings = append(warnings, "a handoff had fields that AOD doesn't know, and ignores: "+names)
	}
	if calls, last := h.broker.AllRefused(); calls > 0 && !strings.Contains(told, last.Msg) {
		why := last.Msg
		if last.Hint != "" {
			why += " (" + last.Hint + ")"
		}
		warnings = append(warnings,
			fmt.Sprintf("every call that it made was refused (%d): %s", calls, fault.OneLine(why)))
	}
	return warnings
}

// Asked reports whether the program has asked for its invocation. The container of such a
// program may be started ahead of a run.
func (h *Handler) Asked() bool { return h.program.asked.Load() }

// Posted is closed when a result has been posted, perhaps to an earlier process.
func (h *Handler) Posted() <-chan struct{} { return h.program.posted }

// patterns are the methods of paths.
type patterns map[string]map[string]action

// serveOwn serves the paths of the capsule API itself, and what nobody has: with a mount for the rest those of the
// program alone.
func (h *Handler) serveOwn(runs handoff.Runs, mounts []Mount) {
	own, rest := h.routes, h.responder.handlerOf(unknown)
	for _, m := range mounts {
		if m.Path == RestPath {
			own, rest = func(handoff.Runs) patterns { return h.ofProgram() }, h.mounted(m.New(h.broker))
		}
	}
	for pattern, methods := range own(runs) {
		h.mux.Handle(pattern, h.responder.handlerOf(byMethod(methods)))
	}
	h.mux.Handle("/", rest)
}

// ofProgram are the paths by which a program gets its run and leaves the result.
func (h *Handler) ofProgram() patterns {
	return patterns{
		"/invocation":        {http.MethodGet: h.program.getInvocation},
		"/invocation/result": {http.MethodPost: h.program.postResult},
		"/health":            {http.MethodGet: h.responder.getHealth},
	}
}

// routes are the paths of a run that this process leads.
func (h *Handler) routes(runs handoff.Runs) patterns {
	known := facts{h.responder, h.broker}
	asking := asking{h.responder, runs, h.broker.Caller().Deadline}
	telling := &telling{runs: runs}
	judging := judging{h.responder, h.pace, semaphore.NewWeighted(1), h.broker.Limits().ArgsBytes}
	all := patterns{
		"/handoff":                {http.MethodPost: h.handoffs.post},
		"/handoff/{id}":           {http.MethodGet: h.handoffs.get, http.MethodDelete: h.handoffs.delete},
		"/execute":                {http.MethodPost: h.handoffs.execute},
		"/capsules":               {http.MethodGet: known.getCapsules},
		"/capsules/{name}/schema": {http.MethodGet: known.getSchema},
		"/ask":                    {http.MethodPost: asking.post},
		"/progress":               {http.MethodPost: telling.postProgress},
		"/validate":               {http.MethodPost: judging.post},
		"/run":                    {http.MethodGet: known.getRun},
	}
	maps.Copy(all, h.ofProgram())
	return all
}

func byMethod(methods map[string]action) action {
	allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	return func(w http.ResponseWriter, r *http.Request) error {
		if act, ok := methods[r.Method]; ok {
			return act(w, r)
		}
		w.Header().Set("Allow", allow)
		return errMethod
	}
}

func unknown(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "there is nothing at this address").
		WithHint("POST /handoff calls a unit, GET /capsules lists them")
}

// ServeHTTP answers a request of the run's.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isForOthers(r) { // it takes no place of a request: tunnels last
		h.responder.paced(h.pace, h.proxy.ServeHTTP)(w, r)
		return
	}
	setSafeHeaders(w)
	h.responder.paced(h.pace, h.serve)(w, r)
}

// ownAuthorities are the authorities under which a sandbox knows the capsule API.
var ownAuthorities = []string{"127.0.0.1:7070", "localhost:7070", "[::1]:7070", "host.docker.internal:7070"}

// isForOthers reports whether a request is one for a proxy. Some clients ask for us like that,
// too.
func isForOthers(r *http.Request) bool {
	return r.Method == http.MethodConnect || r.URL.IsAbs() && !slices.Contains(ownAuthorities, r.URL.Host)
}

// serve answers a request in its turn.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case h.requests <- struct{}{}:
		defer func() { <-h.requests }()
	default:
		full := fault.New(fault.Unavailable, "this run has %d requests under way already", maxRequests)
		h.responder.answer(w, r, full.WithHint("wait for some of them"))
		return
	}
	in, r := httpwire.Receive(w, r)
	defer in.Done()
	in.Count(h.broker.Limits().Memory, "run "+h.broker.Caller().Run)
	if !isClean(r.URL.Path) { // the mux would send it elsewhere
		h.responder.handlerOf(unknown).ServeHTTP(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isClean reports whether a path has no part that leads elsewhere. It may end with a slash.
func isClean(name string) bool {
	clean := path.Clean(name)
	return name == clean || clean != "/" && name == clean+"/"
}

// Serve serves the run on the listener as the function Serve does. The calls go on.
func (h *Handler) Serve(ctx context.Context, listener net.Listener) error {
	return Serve(ctx, listener, h, h.responder.log)
}

// Mount adds a protocol to the capsule API: requests for a path and for all below it go to
// a handler of its own. The paths of the capsule API itself can't be taken.
type Mount struct {
	// Path is absolute: /mcp, or /v1/ for /v1. The handler sees whole paths. ProxyPath is
	// for what a program asks of a proxy.
	Path string
	// New returns the handler for what one run asks. The run's broker says who asks, and
	// makes its calls. New is called once a run, when the run's Handler is made, and must
	// not be slow. A handler that is an io.Closer is closed when the run's attempt is over.
	New func(*handoff.Broker) http.Handler

	// in place of New: methods of the path alone. Another mount may have its other methods
	actions func(responder, *handoff.Broker) map[string]action
}

// ProxyPath is the Path of the Mount that gets CONNECT, and requests for addresses of others. It
// bounds by itself how many there are at once.
const ProxyPath = ""

// RestPath is the Path of the Mount of a run that another machine leads: it gets all that isn't the program's own or
// another mount's. The methods of the run's handoff.Runs aren't called then.
const RestPath = "*"

// mount adds the handlers of other protocols. A path that is taken is a mistake of ours, and
// panics as in http.ServeMux.
func (h *Handler) mount(mounts []Mount) {
	taken := map[string]bool{}
	for _, m := range mounts {
		if m.actions != nil || m.Path == RestPath {
			continue
		}
		path := strings.TrimSuffix(m.Path, "/")
		made := m.New(h.broker)
		if closer, ok := made.(io.Closer); ok {
			h.closers = append(h.closers, closer)
		}
		handler := h.mounted(made)
		if m.Path == ProxyPath {
			h.proxy = handler
			continue
		}
		taken[path] = true
		h.mux.Handle(path, handler)
		h.mux.Handle(path+"/", handler)
	}
	for _, m := range mounts {
		if m.actions != nil {
			h.act(m.Path, m.actions(h.responder, h.broker), taken[m.Path])
		}
	}
}

// act has methods of a path answered. Where nobody else has the path, the others are refused.
func (h *Handler) act(path string, methods map[string]action, taken bool) {
	for method, act := range methods {
		h.mux.Handle(method+" "+path, h.responder.handlerOf(act))
	}
	if !taken {
		h.mux.Handle(path, h.responder.handlerOf(byMethod(methods)))
	}
}

// restTime is how long the requests of a program that has ended have to end, too.
const restTime = 30 * time.Second

// Close closes the handlers of the mounts when the run's attempt is over, and takes no request any
// more. It returns when none is under way: the last of them may have its answer before all that it did
// is told and stored. After 30 seconds it goes on without them. Only the first call does all that.
func (h *Handler) Close() error { return h.closed() }

func (h *Handler) close() error {
	var errs []error
	for _, c := range h.closers {
		errs = append(errs, c.Close())
	}
	late := time.NewTimer(restTime)
	defer late.Stop()
	for ended := range maxRequests {
		select {
		case h.requests <- struct{}{}:
		case <-late.C:
			h.responder.log.Warn("requests outlive their run", "run", h.broker.Caller().Run,
				"requests", maxRequests-ended)
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// mounted gives a handler a connection without a deadline for writing, and answers its panic
// with a problem. The handler bounds the time of what it writes.
func (h *Handler) mounted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		_ = conn.SetWriteDeadline(time.Time{}) // an earlier answer on this connection may have left one
		out := httpwire.Watch(w)
		act := func(w http.ResponseWriter, r *http.Request) error { next.ServeHTTP(w, r); return nil }
		err := h.responder.try(act, out, r)
		switch {
		case err == nil:
		case out.Begun():
			panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
		default:
			h.responder.answer(w, r, err)
		}
	})
}
