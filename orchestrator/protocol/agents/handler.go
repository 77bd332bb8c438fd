package agents

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// Service is the orchestrator as this protocol needs it. Errors are faults.
type Service interface {
	// Submit accepts a run and returns at once. joined says that the run is another submission's.
	Submit(context.Context, spool.Submission) (_ api.Record, joined bool, _ error)
	Get(ctx context.Context, id string) (api.Record, error)
	// Await returns the run at its end, or as it is when ctx ends.
	Await(ctx context.Context, id string) (api.Record, error)
	// Events yields the events of a run after the given one, until its end.
	Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error]
	// Cancel cancels a run. If it has ended already, the error is a Conflict fault.
	Cancel(ctx context.Context, id, reason string) (api.Record, error)
	// FullName returns the name of the unit that the client means by one; the name itself, where there is none.
	FullName(ctx context.Context, name string) string
	// Schema returns a unit's schema.json, or a NotFound fault.
	Schema(ctx context.Context, name string) ([]byte, error)
	// Ready returns a fault while no run can start.
	Ready(context.Context) error
}

// Options are the settings of a Handler.
type Options struct {
	Policy
	PayloadBytes int64        // of a task's inputs; 0 is contract.DefaultMaxBytes
	Logger       *slog.Logger // nil: nothing is logged
}

// ReadyPattern is the pattern of the readiness check, for http.ServeMux.
const ReadyPattern = "GET /health/ready"

// Patterns returns the patterns at which a Handler takes tasks, for http.ServeMux.
func Patterns() []string {
	return []string{
		http.MethodPost + " " + agenthttp.SyncPath,
		http.MethodPost + " " + agenthttp.StreamPath,
		http.MethodPost + " /agents/{unit}/run/sync",
		http.MethodPost + " /agents/{unit}/run/stream",
	}
}

type handler struct {
	svc  Service
	opts Options
}

// Handler returns the handler of the contract's addresses. It gives faults of AOD to the
// httpwire.Notes of a request, for the log of the server around it.
func Handler(svc Service, opts Options) http.Handler {
	opts.PayloadBytes = cmp.Or(opts.PayloadBytes, contract.DefaultMaxBytes)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &handler{svc, opts}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{w: httpwire.Watch(w), r: r, task: &task{}, notes: httpwire.NotesOf(r.Context())}
	err := httpwire.Catch(func() error { return h.route(c) })
	c.notes.Attrs = c.task.attrs()
	if err != nil {
		h.refuse(c, err)
	}
}

// call is a request that is being answered.
type call struct {
	w     *httpwire.Writer
	r     *http.Request
	only  string // the unit of the address; "": any
	task  *task  // as far as it was read
	notes *httpwire.Notes
}

// refuse answers with an error.
func (h *handler) refuse(c *call, err error) {
	c.notes.Report(err, c.w.Begun())
	if c.w.Begun() {
		panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
	}
	p := c.problem(err)
	if p.MayRetry() {
		c.w.Header().Set("Retry-After", p.RetryAfter())
	}
	status := p.Status
	if code := h.refuses200(c.task, err); code != "" {
		status, p.Code = http.StatusOK, code
	}
	_ = httpwire.Reply(c.w, status, httpwire.TypeJSON, c.task.refusal(p)) // whoever asked has gone
}

// problem is what a client may know of an error.
func (c *call) problem(err error) httpwire.Problem {
	p := httpwire.ProblemOf(err)
	p.Run = c.notes.Run
	return p
}

// Refusal converts a problem to the contract's form, for a server that refuses a request
// before the Handler sees it.
func Refusal(p httpwire.Problem) any { return (&task{}).refusal(p) }

func (h *handler) route(c *call) error {
	path := c.r.URL.EscapedPath()
	if path == "/health/ready" {
		return h.ready(c)
	}
	for suffix, answer := range map[string]func(*call) error{"/run/sync": h.sync, "/run/stream": h.stream} {
		unit, found := strings.CutSuffix(path, suffix)
		unit, ours := strings.CutPrefix(unit, "/agents")
		if !found || !ours {
			continue
		}
		var err error
		if c.only, err = url.PathUnescape(strings.TrimPrefix(unit, "/")); err != nil {
			return fault.Wrap(fault.BadRequest, err, "the address can't be read")
		}
		return answer(c)
	}
	return fault.New(fault.NotFound, "there is nothing at this address").
		WithHint("POST %s does a task", agenthttp.SyncPath)
}

// ready answers the readiness check.
func (h *handler) ready(c *call) error {
	status, word := http.StatusOK, "ready"
	if err := h.svc.Ready(c.r.Context()); err != nil {
		status, word = http.StatusServiceUnavailable, "degraded"
	}
	return httpwire.Reply(c.w, status, httpwire.TypeJSON, map[string]string{"status": word, "service": "aod"})
}
