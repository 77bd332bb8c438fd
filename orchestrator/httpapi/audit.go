package httpapi

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/audit"
)

// auditHandlers answer who did what.
type auditHandlers struct{ log *audit.Log }

func (h auditHandlers) list(c echo.Context) error {
	q := paged(c, "by", "object", "since")
	f := api.AuditFilter{
		By: q.text("by"), Object: q.text("object"), Since: q.time("since"), After: q.after(), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	page, err := h.log.List(c.Request().Context(), f)
	return replied(c, page, err)
}

// originOf returns where a request comes from.
func originOf(r *http.Request) access.Origin {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	_, ids, _ := strings.Cut(httpwire.TraceParent(r), "-")
	trace, _, _ := strings.Cut(ids, "-")
	return access.Origin{Address: host, Trace: trace}
}

// refusals has the audit know of requests that were refused.
type refusals struct {
	log    *audit.Log // nil: nobody wants to know
	routes *routes
}

// counted counts a request that was refused for who asked, or for how much.
func (r refusals) counted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.SetRequest(c.Request().WithContext(access.WithOrigin(c.Request().Context(), originOf(c.Request()))))
		err := next(c)
		if err != nil {
			c.Error(err)
		}
		ctx, status := c.Request().Context(), c.Response().Status
		switch status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		case http.StatusNotFound:
			if !access.WasHidden(ctx) {
				return nil
			}
		default:
			return nil
		}
		if r.log != nil && !access.WasNoted(ctx) {
			r.log.Refused(ctx, audit.Refusal{
				Verb: strings.ToLower(methodOf(c.Request())), Noun: "route", Object: r.routes.nameOf(c),
				Result: strconv.Itoa(status),
			})
		}
		return nil
	}
}

// tell notes that a call was refused that doesn't come over HTTP.
func (r refusals) tell(ctx context.Context, by string, err error) {
	if r.log != nil {
		r.log.Refused(ctx, audit.Refusal{
			Verb: "call", Noun: "route", Object: by, Result: strconv.Itoa(fault.HTTPStatus(err)),
		})
	}
}
