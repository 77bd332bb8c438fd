package httpapi

import (
	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/fault"
)

// getA2A answers GET /v1/a2a.
func (a *API) getA2A(c echo.Context) error {
	if a.opts.A2A == nil {
		return fault.New(fault.NotFound, "units are no agents of A2A on this server").WithHint("see the setting a2a.enabled")
	}
	status, err := a.opts.A2A(c.Request().Context())
	return replied(c, status, err)
}
