package upstream

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// Session is the run that asks.
type Session struct {
	Run      string
	Names    []string  // of the upstreams that its unit may use
	Deadline time.Time // of the run; zero: none
	// Record is told each request to an upstream of Names that is over, from several
	// goroutines; nil: nobody is.
	Record func(Exchange)
}

// Exchange is a request that is over. It has nothing of what was said.
type Exchange struct {
	Upstream string
	Status   int    // of the answer; that of a refusal of ours, too
	Rule     string // of a refusal of ours; "": the upstream answered
	BytesIn  int64  // of the answer's body, which the run got
	BytesOut int64  // of the request's body, which the upstream got
	Started  time.Time
	Took     time.Duration
}

// handler answers what one run asks.
type handler struct {
	*Upstreams
	session Session
	life    context.Context //nolint:containedctx // of the run's requests: Close ends it
	end     context.CancelFunc

	underWay *semaphore.Weighted // requests
}

// Handler returns the handler of a run for Path and all below it, which is an io.Closer: Close
// ends what is under way. It has to see whole paths, and sets deadlines itself. Whoever serves it recovers panics.
func (u *Upstreams) Handler(s Session) http.Handler {
	h := &handler{Upstreams: u, session: s, underWay: semaphore.NewWeighted(maxRequests)}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Close implements io.Closer.
func (h *handler) Close() error {
	h.end()
	return nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, clean, refusal := h.admit(r)
	if s == nil {
		refusal.answer(w)
		return
	}
	e := &exchange{Exchange: Exchange{Upstream: s.name, Started: time.Now()}, service: s, h: h, w: w}
	defer e.tell()
	if refusal == nil && !h.underWay.TryAcquire(1) {
		refusal = refuse(http.StatusServiceUnavailable, RuleBusy, fault.Unavailable,
			"this run has %d requests to upstreams under way already", maxRequests).
			hint("wait for some of them to end")
	}
	if refusal != nil {
		e.refuse(refusal)
		return
	}
	defer h.underWay.Release(1)
	ctx, stop := h.context(r.Context())
	defer stop()
	e.serve(ctx, r, clean)
}

// admit finds out what is asked for, and whether it may be. Without a service it isn't known
// whom the request was for.
func (h *handler) admit(r *http.Request) (s *service, clean string, refusal *Refusal) {
	rest := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), Path), "/")
	name, _, _ := strings.Cut(rest, "/")
	s = h.known[name]
	if s == nil || !slices.Contains(h.session.Names, name) {
		return nil, "", h.refuseName(name)
	}
	clean, ok := cleanPath(rest[len(name):])
	switch {
	case !ok:
		refusal = refuse(http.StatusBadRequest, RulePath, fault.BadRequest,
			"the path of a request to the upstream %s isn't plain", name).
			hint("leave out . and .., empty segments, backslashes and encoded slashes")
	case !s.allows(clean):
		refusal = refuse(http.StatusForbidden, RulePath, fault.Forbidden, "the upstream %s isn't open for this path",
			name).
			hint("it is for %s; the operator can add to upstreams.%s.paths", strings.Join(s.Paths, ", "), name)
	case !slices.Contains(s.Methods, r.Method):
		refusal = refuse(http.StatusForbidden, RuleMethod, fault.Forbidden, "the upstream %s isn't open for the method",
			name).
			hint("it takes %s; the operator can add to upstreams.%s.methods", strings.Join(s.Methods, ", "), name)
	case r.Header.Get("Upgrade") != "":
		refusal = refuse(http.StatusBadRequest, RuleRequest, fault.BadRequest,
			"connections to the upstream %s stay what they are: Upgrade isn't passed on", name).
			hint("use what the service offers without WebSockets, such as server-sent events")
	}
	return s, clean, refusal
}

// refuseName refuses a name. It repeats none that the unit doesn't have.
func (h *handler) refuseName(name string) *Refusal {
	if slices.Contains(h.session.Names, name) {
		return refuse(http.StatusForbidden, RuleUpstream, fault.NotFound, "there is no upstream %s", name).
			hint("whoever runs AOD can add upstreams.%s to its configuration", name)
	}
	have := "it names none"
	if len(h.session.Names) > 0 {
		have = "it names " + strings.Join(h.session.Names, ", ")
	}
	return refuse(http.StatusForbidden, RuleUpstream, fault.Forbidden,
		"the unit doesn't name this upstream in its agent.yaml").
		hint("%s; add it to upstreams there, and ask at %s", have, path.Join(Path, "NAME", "…"))
}

// context is that of a request, with the end of its run.
func (h *handler) context(request context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(request)
	if !h.session.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(request, h.session.Deadline)
	}
	unhook := context.AfterFunc(h.life, cancel)
	return ctx, func() { unhook(); cancel() }
}

// maxKey bounds a key in bytes: it is a part of a header.
const maxKey = 8 << 10

// key reads the key of a service.
func (u *Upstreams) key(s *service) (secrets.Secret, error) {
	if s.Secret == "" {
		return "", nil
	}
	key, err := u.opts.Key(s.Secret)
	if err == nil &&
		(len(key) > maxKey || strings.ContainsFunc(string(key), func(c rune) bool { return c < ' ' || c >= 0x7f })) {
		err = fault.New(fault.Input,
			"the secret %q isn't a key: it is too long, or has characters that no header takes", s.Secret).
			WithHint("put the key, and nothing else, into its file")
	}
	return key, err
}
