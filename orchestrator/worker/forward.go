package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// calls implement run.ChildRuns: the server makes the calls of a run, and ends them.
type calls struct {
	handoff.Runs // not there
	held         *held
}

// Keys implements run.ChildRuns.
func (calls) Keys() []string { return nil }

// Mounts implements run.ChildRuns.
func (c calls) Mounts() []capsuleapi.Mount {
	forward := newForwarder(c.held)
	return []capsuleapi.Mount{
		{Path: capsuleapi.RestPath, New: func(*handoff.Broker) http.Handler { return forward }},
		{Path: capsuleapi.ProxyPath, New: func(*handoff.Broker) http.Handler { return c.held.outside() }},
	}
}

// outside is the program's way to hosts by name, which leads out from this machine.
func (h *held) outside() http.Handler {
	policy := h.run.Unit.Policy
	return h.worker.opts.Door.Session(egress.Terms{
		Unit: h.run.Unit.Name, Allowed: policy.Egress, Bounded: policy.Bounds.Egress != nil, Cap: policy.Bounds.Egress,
		Tally: &h.egress, Tell: h.report.reached,
	})
}

// Lend implements run.ChildRuns.
func (calls) Lend(_ context.Context, wait func()) { wait() }

// CancelAll implements run.ChildRuns.
func (calls) CancelAll(error) {}

// End implements run.ChildRuns.
func (calls) End(error) {}

// forwarder passes what a program asks on to the server. What may be asked again is, while the server is away.
type forwarder struct {
	held  *held
	proxy *httputil.ReverseProxy
}

// mostKept is how many bytes of a request are kept for the case that it is made again.
const mostKept = 64 << 20

const headerKey = "Idempotency-Key"

func newForwarder(h *held) *forwarder {
	f := &forwarder{held: h}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: f.rewrite, Transport: again{h}, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(h.worker.logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			away := fault.New(fault.Unavailable, "the server doesn't answer").WithHint("try again in a moment")
			_ = httpwire.ReplyProblem(w, httpwire.ProblemOf(away)) // whoever asked has gone
		},
	}
	return f
}

// rewrite makes the request to the server of one of the program's.
func (f *forwarder) rewrite(p *httputil.ProxyRequest) {
	base := *f.held.worker.link.base
	path := leasePath(f.held.lease(), wire.API)
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = base.Scheme, base.Host, ""
	prefix := strings.TrimSuffix(base.Path, "/") + path
	p.Out.URL.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + path + p.In.URL.EscapedPath()
	p.Out.URL.Path = prefix + p.In.URL.Path
	if own := p.In.Header.Get("Authorization"); own != "" {
		p.Out.Header.Set(wire.HeaderAuthorization, own)
	}
	p.Out.Header.Set("Authorization", "Bearer "+f.held.worker.link.credential)
	p.Out.Header.Del("Origin") // that of a program is no page's
}

// ServeHTTP implements http.Handler. A handoff without a key gets one, so that it can be asked for again.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == "/handoff" && r.Header.Get(headerKey) == "" {
		r.Header.Set(headerKey, "relay-"+rand.Text())
	}
	if r.Header.Get(headerKey) != "" && r.Body != nil {
		raw, err := io.ReadAll(io.LimitReader(r.Body, mostKept+1))
		if err != nil || len(raw) > mostKept {
			_ = httpwire.ReplyProblem(w, httpwire.ProblemOf(httpwire.NewBody(bytes.NewReader(raw), mostKept).Or(err)))
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	}
	f.proxy.ServeHTTP(w, r)
}

// again is a transport that makes requests again that may be, until the attempt's end.
type again struct{ held *held }

// RoundTrip implements http.RoundTripper.
func (a again) RoundTrip(r *http.Request) (response *http.Response, err error) {
	transport := a.held.worker.link.relays.Transport
	body := r.Body
	_ = a.held.worker.link.repeat(r.Context(), "relay", func() error {
		if a.held.life.Err() != nil {
			err = context.Cause(a.held.life)
			return nil //nolint:nilerr // there is no sense in another try
		}
		try := r.Clone(r.Context())
		if r.GetBody != nil {
			try.Body, _ = r.GetBody() // never fails
		} else if body != nil {
			try.Body = io.NopCloser(body)
		}
		response, err = transport.RoundTrip(try) //nolint:bodyclose // whoever gets the answer does, or tryAgain
		again := a.tryAgain(r, response, err)
		if again != nil {
			response = nil
		}
		return again
	})
	if response == nil && err == nil {
		err = context.Cause(r.Context())
	}
	return response, err
}

// tryAgain returns an error where a request is to be made again.
func (a again) tryAgain(r *http.Request, response *http.Response, err error) error {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete ||
		r.GetBody != nil && r.Header.Get(headerKey) != ""
	var failed *net.OpError
	unsent := errors.As(err, &failed) && failed.Op == "dial"
	switch {
	case err != nil && (safe || unsent):
		return fault.Wrap(fault.Unavailable, err, "the server is away")
	case err != nil || !safe || !isAway(response.StatusCode):
		return nil //nolint:nilerr // the program gets the answer, or the error, as it is
	}
	_ = response.Body.Close() // it says no more
	return fault.New(fault.Unavailable, "the server, or a proxy before it, answered %d", response.StatusCode)
}

func isAway(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable ||
		status == http.StatusGatewayTimeout
}
