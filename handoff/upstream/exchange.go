package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// exchange is one request to a service.
type exchange struct {
	Exchange
	service *service
	h       *handler
	w       http.ResponseWriter
	sent    *upload
}

// serve passes the request on, and its answer back.
func (e *exchange) serve(ctx context.Context, r *http.Request, clean string) {
	key, err := e.h.key(e.service)
	if err != nil {
		e.refuse(refuse(http.StatusServiceUnavailable, RuleKey, fault.Unavailable,
			"the key of the upstream %s can't be used", e.service.name).
			hint("whoever runs AOD sees why in its log").because(err))
		return
	}
	request, silence := httpwire.WatchSilence(ctx, e.h.opts.FirstByte)
	defer silence.Stop(nil)
	_ = http.NewResponseController(e.w).EnableFullDuplex() // a writer without it is a test's
	e.sent = &upload{
		body: httpwire.Unpaced(r), conn: http.NewResponseController(e.w), silence: silence,
		limits: e.h.opts,
	}
	defer e.sent.close()
	response, err := e.service.transport.RoundTrip(e.request(request, r, clean, string(key)))
	if err != nil && e.h.life.Err() == nil && e.sent.brokeOff() {
		e.refuse(refuse(http.StatusBadRequest, RuleRequest, fault.BadRequest,
			"the body of a request to the upstream %s broke off", e.service.name).hint("send all of it"))
		return
	}
	if err != nil {
		e.refuse(e.service.lost(ctx, request, err))
		return
	}
	defer response.Body.Close()
	silence.Heard(e.h.opts.Silence)
	e.giveBack(response, silence, key)
}

// request is what the service is asked.
func (e *exchange) request(ctx context.Context, r *http.Request, clean, key string) *http.Request {
	u := e.service.target(clean, r.URL.RawQuery)
	out := (&http.Request{
		Method: r.Method, URL: u, Host: u.Host, Header: forwarded(r.Header, e.service.Header),
		ContentLength: r.ContentLength,
	}).WithContext(ctx)
	if r.ContentLength != 0 {
		out.Body = e.sent
	}
	if key != "" {
		if e.service.Scheme != "" {
			key = e.service.Scheme + " " + key
		}
		out.Header.Set(e.service.Header, key)
	}
	return out
}

// giveBack passes an answer on as it comes. A redirect is followed by nobody here: the caller
// hears where it leads if that is inside of the service.
func (e *exchange) giveBack(response *http.Response, silence *httpwire.Silence, key secrets.Secret) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		e.refuse(refuse(http.StatusBadGateway, RuleUnreachable, fault.Unavailable,
			"the upstream %s wants to speak another protocol", e.service.name).hint("ask it for something else"))
		return
	}
	if key != "" && isEncoded(response.Header) {
		e.refuse(refuse(http.StatusBadGateway, RuleEncoding, fault.Unsupported,
			"the upstream %s answers with a Content-Encoding, in which its key would not be found", e.service.name).
			hint("it was asked for identity: whoever runs the service can switch its compression off"))
		return
	}
	passOn(e.w.Header(), response.Header, key)
	if location := response.Header.Get("Location"); location != "" && !quotes([]string{location}, key) {
		if back := e.service.backInside(response.Request.URL, location); back != "" {
			e.w.Header().Set("Location", back)
		}
	}
	e.Status = response.StatusCode
	e.w.WriteHeader(response.StatusCode)
	e.copy(newGuarded(silence.Reader(response.Body, e.h.opts.Silence), key))
}

// copy passes a body on, each part at once. An answer that breaks off ends the connection, so
// that nobody takes a part for the whole.
func (e *exchange) copy(from io.Reader) {
	conn, buf := http.NewResponseController(e.w), make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_ = conn.SetWriteDeadline(time.Now().Add(e.h.opts.Silence)) // a writer without one is a test's
			written, failed := e.w.Write(buf[:n])
			e.BytesIn += int64(written)
			if failed != nil || !flushed(conn) {
				panic(http.ErrAbortHandler)
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			if errors.Is(err, errQuotesKey) {
				e.Rule = RuleKey
				e.h.opts.Logger.Warn("answer of an upstream cut off: it holds the key", "run", e.h.session.Run,
					"upstream", e.service.name)
			}
			panic(http.ErrAbortHandler)
		}
	}
}

func flushed(conn *http.ResponseController) bool {
	err := conn.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// refuse answers instead of the service.
func (e *exchange) refuse(r *Refusal) {
	e.Status, e.Rule = r.Status, r.Rule
	r.answer(e.w)
	if r.Status >= http.StatusInternalServerError && r.Rule != RuleBusy {
		e.h.opts.Logger.Warn("upstream failed", "run", e.h.session.Run, "upstream", e.service.name, "rule", r.Rule,
			"status", r.Status, "error", r.Fault.Err)
	}
}

// tell tells who keeps the books.
func (e *exchange) tell() {
	if e.h.session.Record == nil {
		return
	}
	e.Took = time.Since(e.Started)
	if e.sent != nil {
		e.BytesOut = e.sent.count()
	}
	e.h.session.Record(e.Exchange)
}
