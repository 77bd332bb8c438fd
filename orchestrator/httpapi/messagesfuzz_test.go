package httpapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// FuzzSaying reads bodies of messages. Whatever comes is a message within its bounds, or a fault that
// a client is told.
func FuzzSaying(f *testing.F) {
	for _, body := range []string{
		`{"text":"x"}`, `{"data":{"a":[1.0]}}`, `{"parts":[{"text":"x","media_type":"text/plain"},{"data":null}],"metadata":{"k":1}}`, `{"id":"i","text":"\u0000"}`,
		`{"parts":[{"file":{"name":"../x"}}]}`, `{"text":1}`, `[]`, `{"text":"a","text":"b"}`, `{"metadata":null,"text":"x"}`,
	} {
		f.Add([]byte(body))
	}
	e := echo.New()
	fuzzbound.Run(f, func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		saying, err := readSaying(e.NewContext(r, httptest.NewRecorder()))
		var m api.MessageEvent
		if err == nil {
			m, err = saying.Message()
		}
		if err == nil {
			m.ID = "i"
			err = api.CheckMessage(m)
		}
		if err == nil {
			return
		}
		switch fault.KindOf(err) {
		case fault.Input, fault.BadRequest, fault.TooLarge:
		default:
			t.Fatalf("%q: %v", body, err)
		}
	})
}
