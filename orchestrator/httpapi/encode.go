package httpapi

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// reply answers with a value as JSON. HTML in strings isn't escaped.
func reply(c echo.Context, status int, v any) error {
	return writeJSON(c, status, httpwire.TypeJSON, v)
}

// replied answers with what was asked for, unless there is an error.
func replied(c echo.Context, v any, err error) error {
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, v)
}

// stored answers with what is at an address now, and says so if it is new.
func stored(c echo.Context, at string, v any, created bool, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, at)
	if created {
		return reply(c, http.StatusCreated, v)
	}
	return reply(c, http.StatusOK, v)
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
