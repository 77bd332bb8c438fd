package handoff

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const maxRequests = 256 // of one run at a time; most of them wait

// Handler is the capsule API of one run, over the run's broker. It may serve any number of
// connections.
type Handler struct {
	responder
	broker   *Broker
	requests chan struct{}
	pace     pace
	result   postedResult
	asked    atomic.Bool
	throttle Throttle
	ignored  ignored
	posted   chan struct{} // closed when there is a result that was posted
	post     func()
	mux      *http.ServeMux
	proxy    http.Handler // of requests that are for others
	closers  []io.Closer  // handlers of mounts
	closed   func() error
}

// NewHandler returns the handler for what one run asks, with the mounts beside the paths of
// its own. A nil logger drops what it gets.
func NewHandler(caller Caller, runs Runs, limits Limits, logger *slog.Logger, mounts ...Mount) *Handler {
	broker := NewBroker(caller, runs, limits, logger)
	h := &Handler{
		responder: responder{broker.log},
		broker:    broker,
		requests:  make(chan struct{}, maxRequests),
		pace:      newPace(),
		result:    newPostedResult(caller.Result),
		posted:    make(chan struct{}),
	}
	h.post = sync.OnceFunc(func() { close(h.posted) })
	if h.result.exists() { // an earlier process got it
		h.post()
	}
	h.mux, h.proxy = h.routes(), h.handlerOf(unknown)
	h.mount(mounts)
	h.closed = sync.OnceValue(h.close)
	return h
}

// Remember is Broker.Remember for the run's broker.
func (h *Handler) Remember(keys ...string) { h.broker.Remember(keys...) }

// Warnings tell what the run asked in vain. They are for its record, when it has ended.
func (h *Handler) Warnings() []string {
	var warnings []string
	if names := h.ignored.list(); names != "" {
		warnings = append(warnings, "a handoff had fields that AOD doesn't know, and ignores: "+names)
	}
	if calls, last := h.broker.AllRefused(); calls > 0 {
		why := last.Msg
		if last.Hint != "" {
			why += " (" + last.Hint + ")"
		}
		warnings = append(warnings,
			fmt.Sprintf("every call that it made was refused (%d): %s", calls, fault.OneLine(why)))
	}
	return warnings
}

// caller is the run that asks.
func (h *Handler) caller() Caller { return h.broker.caller }

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, methods := range map[string]map[string]action{
		"/handoff":                {http.MethodPost: h.postHandoff},
		"/handoff/{id}":           {http.MethodGet: h.getHandoff, http.MethodDelete: h.deleteHandoff},
		"/execute":                {http.MethodPost: h.postExecute},
		"/capsules":               {http.MethodGet: h.getCapsules},
		"/capsules/{name}/schema": {http.MethodGet: h.getSchema},
		"/ask":                    {http.MethodPost: h.postAsk},
		"/artifact":               {http.MethodPost: h.postArtifact},
		"/progress":               {http.MethodPost: h.postProgress},
		"/run":                    {http.MethodGet: h.getRun},
		"/invocation":             {http.MethodGet: h.getInvocation},
		"/invocation/result":      {http.MethodPost: h.postResult},
		"/health":                 {http.MethodGet: h.getHealth},
	} {
		mux.Handle(pattern, h.handlerOf(byMethod(methods)))
	}
	mux.Handle("GET "+sharedPath, h.handlerOf(h.getMessages))
	mux.Handle("/", h.handlerOf(unknown))
	return mux
}

// sharedPath is a path of which a mount may take the methods that are not the capsule API's own: a
// model is asked there, too.
const sharedPath = "/messages"

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
		h.paced(h.pace, h.proxy.ServeHTTP)(w, r)
		return
	}
	setSafeHeaders(w)
	h.paced(h.pace, h.serve)(w, r)
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
		h.answer(w, r, fault.New(fault.Unavailable, "this run has %d requests under way already", maxRequests).
			WithHint("wait for some of them"))
		return
	}
	in, r := httpwire.Receive(w, r)
	defer in.Done()
	in.Count(h.broker.limits.Memory, "run "+h.caller().Run)
	if !isClean(r.URL.Path) { // the mux would send it elsewhere
		h.handlerOf(unknown).ServeHTTP(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isClean reports whether a path has no part that leads elsewhere. It may end with a slash.
func isClean(name string) bool {
	clean := path.Clean(name)
	return name == clean || clean != "/" && name == clean+"/"
}
