package httpapi

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/httpwire"
)

// reply answers with a value as JSON. HTML in strings isn't escaped.
func reply(c echo.Context, status int, v any) error {
	return writeJSON(c, status, httpwire.TypeJSON, v)
}

func writeJSON(c echo.Context, status int, contentType string, v any) error {
	body, err := httpwire.Encode(v)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentType, contentType) // Blob doesn't overwrite it
	if err := c.Blob(status, contentType, body); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
