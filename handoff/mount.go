package handoff

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Mount adds a protocol to the capsule API: requests for a path and for all below it go to
// a handler of its own. The paths of the capsule API itself can't be taken, but for other methods
// than GET of /messages.
type Mount struct {
	// Path is absolute: /mcp, or /v1/ for /v1. The handler sees whole paths. ProxyPath is
	// for what a program asks of a proxy.
	Path string
	// New returns the handler for what one run asks. The run's broker says who asks, and
	// makes its calls. New is called once a run, when the run's Handler is made, and must
	// not be slow. A handler that is an io.Closer is closed when the run's attempt is over.
	New func(*Broker) http.Handler
}

// ProxyPath is the Path of the Mount that gets CONNECT, and requests for addresses of others. It
// bounds by itself how many there are at once.
const ProxyPath = ""

// mount adds the handlers of other protocols. A path that is taken is a mistake of ours, and
// panics as in http.ServeMux.
func (h *Handler) mount(mounts []Mount) {
	shared := false
	for _, m := range mounts {
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
		shared = shared || path == sharedPath
		h.mux.Handle(path, handler)
		h.mux.Handle(path+"/", handler)
	}
	if !shared {
		h.mux.Handle(sharedPath, h.handlerOf(byMethod(map[string]action{http.MethodGet: h.getMessages})))
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
			h.log.Warn("requests outlive their run", "run", h.caller().Run, "requests", maxRequests-ended)
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
		err := h.try(func(w http.ResponseWriter, r *http.Request) error { next.ServeHTTP(w, r); return nil }, out, r)
		switch {
		case err == nil:
		case out.Begun():
			panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
		default:
			h.answer(w, r, err)
		}
	})
}
