package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

// serverHandlers answer what is asked of the server itself.
type serverHandlers struct {
	svc      *orchestrator.Service
	document []byte // OpenAPI
	gatherer prometheus.Gatherer
	agents   func(context.Context) (api.A2AStatus, error) // nil: units aren't agents of A2A
	reload   func(context.Context) (api.Reload, error)    // nil: there are no settings to read again
}

func (h serverHandlers) alive(c echo.Context) error {
	return reply(c, http.StatusOK, map[string]string{"status": "ok"})
}

// ready answers 503 with the reason when the server isn't ready, whatever the kind of the
// reason.
func (h serverHandlers) ready(c echo.Context) error {
	err := h.svc.Ready(c.Request().Context())
	if err == nil {
		return reply(c, http.StatusOK, map[string]string{"status": "ready"})
	}
	public := fault.Public(err)
	return fault.Wrap(fault.Unavailable, err, "%s", public.Msg).WithHint("%s", public.Hint)
}

func (h serverHandlers) metrics() echo.HandlerFunc {
	serve := echo.WrapHandler(promhttp.HandlerFor(h.gatherer, promhttp.HandlerOpts{}))
	return func(c echo.Context) error {
		if err := h.svc.Figures.CheckWhole(c.Request().Context()); err != nil {
			return err
		}
		return serve(c)
	}
}

func (h serverHandlers) openAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, h.document)
}

func (h serverHandlers) pool(c echo.Context) error {
	return reply(c, http.StatusOK, h.svc.Figures.PoolOf(c.Request().Context()))
}

func (h serverHandlers) stats(c echo.Context) error {
	stats, err := h.svc.Figures.Stats(c.Request().Context())
	return replied(c, stats, err)
}

// usage answers what was used, grouped by what ?by= names.
func (h serverHandlers) usage(c echo.Context) error {
	q := queryOf(c, "by", "since", "until")
	f := api.UsageFilter{Since: q.time("since"), Until: q.time("until")}
	if by := q.text("by"); by != "" {
		f.By = strings.Split(by, ",")
	}
	if q.err != nil {
		return q.err
	}
	used, err := h.svc.Figures.Usage(c.Request().Context(), f)
	return replied(c, map[string]any{"usage": used}, err)
}

// quotas answers what is left to the client's teams and to its token.
func (h serverHandlers) quotas(c echo.Context) error {
	list, err := h.svc.Quotas.List(c.Request().Context())
	return replied(c, map[string]any{"quotas": list}, err)
}

// reloadSettings has the server read its settings again, for an operator of the whole server.
func (h serverHandlers) reloadSettings(c echo.Context) error {
	ctx := c.Request().Context()
	if !access.ReachOf(ctx).All {
		return fault.New(fault.Forbidden, "the settings are the whole server's").
			WithHint("ask its operator, or use a token with the scope admin and without a team")
	}
	if h.reload == nil {
		return fault.New(fault.Unsupported, "this server has no settings to read again").WithHint("start it again")
	}
	done, err := h.reload(ctx)
	return replied(c, done, err)
}

// prune removes finished runs. The body must say which: it may not be empty.
func (h serverHandlers) prune(c echo.Context) error {
	opts, err := pruneOptions(c)
	if err != nil {
		return err
	}
	report, err := h.svc.Retention.Prune(c.Request().Context(), opts)
	return replied(c, report, err)
}

func pruneOptions(c echo.Context) (api.PruneOptions, error) {
	var opts api.PruneOptions
	var age string
	err := readObject(c, httpwire.SmallBody, member{"older_than", &age}, member{"max_bytes", &opts.MaxBytes},
		member{"images", &opts.Images}, member{"dry_run", &opts.DryRun})
	if err != nil {
		return opts, err
	}
	if age != "" {
		opts.OlderThan, err = time.ParseDuration(age)
	}
	if err != nil || opts.OlderThan < 0 || opts.MaxBytes < 0 {
		return opts, fault.New(fault.BadRequest, "older_than or max_bytes is not valid").
			WithHint("older_than is a duration such as 24h, max_bytes a number of bytes")
	}
	if opts.Images && (age != "" || opts.MaxBytes > 0) {
		return opts, fault.New(fault.BadRequest,
			"images are pruned without older_than and max_bytes, which are for runs").
			WithHint("send two requests, one for runs and one for images")
	}
	return opts, nil
}

func (h serverHandlers) a2a(c echo.Context) error {
	if h.agents == nil {
		return fault.New(fault.NotFound, "units aren't agents of A2A on this server").
			WithHint("see the setting a2a.enabled")
	}
	status, err := h.agents(c.Request().Context())
	return replied(c, status, err)
}
