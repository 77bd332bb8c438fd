package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// handler answers what one run asks.
type handler struct {
	gw      *Gateway
	session Session
	keys    keyring

	underWay *semaphore.Weighted // requests
}

// Handler returns the handler of a run: POST /v1/chat/completions, /v1/responses, /v1/messages
// and /v1/embeddings, GET /v1/models and /v1/models/{id}, and the same without /v1. It has to
// see whole paths. Whoever serves it recovers panics; the handler sets deadlines itself.
func (g *Gateway) Handler(s Session) http.Handler {
	h := &handler{gw: g, session: s, underWay: semaphore.NewWeighted(maxCalls)}
	if h.session.Answers == nil {
		h.session.Answers = NewMemory()
	}
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, isDialect := dialectAt(r.URL.Path)
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	switch {
	case isDialect && r.Method == http.MethodPost:
		h.post(w, r, d)
	case path == "/models" || strings.HasPrefix(path, "/models/"):
		h.getModels(w, r, strings.TrimPrefix(strings.TrimPrefix(path, "/models"), "/"))
	case isDialect:
		w.Header().Set("Allow", http.MethodPost)
		answerRefusal(w, d.name, refuse(http.StatusMethodNotAllowed, RuleRequest, "this address takes POST alone").
			hint("send a request in the dialect"))
	default:
		answerRefusal(w, catalog.Chat, refuse(http.StatusNotFound, RuleRequest, "there is nothing at this address").
			hint("there are /v1/chat/completions, /v1/responses, /v1/messages, /v1/embeddings and /v1/models"))
	}
}

// post answers a request for a model.
func (h *handler) post(w http.ResponseWriter, r *http.Request, d *dialect) {
	c := newCall(h.gw, &h.session, d, w)
	ctx, stop := h.context(r.Context())
	defer stop()
	if err := h.serve(ctx, c, r); err != nil {
		c.fail(ctx, err)
	}
	c.tell()
}

// serve answers a request. An error has still to be told.
func (h *handler) serve(ctx context.Context, c *call, r *http.Request) error {
	if !h.underWay.TryAcquire(1) {
		return refuse(http.StatusServiceUnavailable, RuleBusy, "this run has %d requests under way already", maxCalls).
			hint("wait for some of them to end")
	}
	defer h.underWay.Release(1)
	body, err := readBody(ctx, r)
	if err != nil {
		return err
	}
	if err := c.prepare(ctx, r.Header, body); err != nil {
		return err
	}
	release, err := h.keys.hold(ctx, c.meta.Key)
	if err != nil {
		return err
	}
	defer release()
	return c.answer(ctx)
}

// context is that of a request, with the end of its run.
func (h *handler) context(request context.Context) (context.Context, context.CancelFunc) {
	if h.session.Deadline.IsZero() {
		return context.WithCancel(request)
	}
	return context.WithDeadline(request, h.session.Deadline)
}

// readBody reads a body. Before that it waits until there is memory for one whose size is known.
func readBody(ctx context.Context, r *http.Request) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, refuse(http.StatusBadRequest, RuleRequest, "the body is encoded").
			hint("send it as it is, without Content-Encoding")
	}
	source := httpwire.BodyOf(r, maxBody)
	if r.ContentLength > 0 && r.ContentLength <= maxBody {
		if err := httpwire.Reserve(ctx, r.ContentLength); err != nil {
			return nil, err
		}
	}
	body, err := readAll(source, r.ContentLength)
	return body, source.Or(err)
}

// readAll reads into memory that fits, where the size is known.
func readAll(r io.Reader, size int64) ([]byte, error) {
	if size < 0 || size > maxBody {
		return io.ReadAll(r)
	}
	body := make([]byte, size)
	n, err := io.ReadFull(r, body)
	if err != nil {
		return body[:n], err
	}
	return body, nil
}

func digestOf(d *dialect, body []byte) string {
	sum := sha256.New()
	_, _ = io.WriteString(sum, string(d.name)+"\n") // it has no error
	_, _ = sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}

// answerRefusal writes a refusal that nothing was sent before.
func answerRefusal(w http.ResponseWriter, d catalog.Dialect, r *Refusal) {
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("X-Should-Retry", strconv.FormatBool(r.again))
	if r.again {
		w.Header().Set("Retry-After", httpwire.RetryText(0))
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.body(d)) //nolint:gosec // it is JSON, and whoever asked may be gone
}

const typeJSON = "application/json"
