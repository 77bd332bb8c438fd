package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// grantLook is how often it is looked whether a request that lasts is still allowed.
const grantLook = time.Second

// watched returns a context that ends when a token doesn't allow a scope any more, with the fault
// that says so as its cause. It looks by a clock of its own: a request that is silent doesn't come
// past here again, and neither does one that has much to tell. end must be called, or ctx end.
func (a auth) watched(
	ctx context.Context, token string, scope access.Scope,
) (_ context.Context, end context.CancelCauseFunc) {
	ctx, end = context.WithCancelCause(ctx)
	go func() {
		clock := time.NewTicker(grantLook)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
			}
			if _, err := a.allowed(token, scope); err != nil {
				end(err)
				return
			}
		}
	}()
	return ctx, end
}

// whileAllowed serves a request that may last, for as long as its token allows it. A stream of
// events ends with a comment that says why.
func (a *API) whileAllowed(c echo.Context, token string, scope access.Scope, next echo.HandlerFunc) error {
	request := c.Request()
	defer c.SetRequest(request) // the outer handlers must not take this end for the client's
	ctx, end := a.auth.watched(request.Context(), token, scope)
	defer end(nil)
	c.SetRequest(request.WithContext(ctx))
	err := next(c)
	if ctx.Err() == nil || request.Context().Err() != nil {
		return err
	}
	why := context.Cause(ctx)
	a.opts.Logger.InfoContext(ctx, "request ended before its time", "route", a.routeOf(c), "token",
		access.ClientOf(ctx), fault.LogAttr(why))
	if !c.Response().Committed {
		return why
	}
	if strings.HasPrefix(c.Response().Header().Get(echo.HeaderContentType), httpwire.TypeEvents) {
		_ = httpwire.NewEventWriter(c.Response()).Comment(fault.Public(why).Msg) // the client may have gone
	}
	return err
}
