package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/labstack/echo/v4"
)

// reply answers with a value as JSON. HTML in strings stays as it is.
func reply(c echo.Context, status int, v any) error {
	return writeJSON(c, status, echo.MIMEApplicationJSON, v)
}

func writeJSON(c echo.Context, status int, contentType string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	c.Response().Header().Set(echo.HeaderContentType, contentType) // Blob keeps one that is there
	if err := c.Blob(status, contentType, b.Bytes()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
