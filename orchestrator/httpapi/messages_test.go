package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestMessagesOverHTTP(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.begin()
	run := "/v1/runs/" + id
	said := s.do("POST", run+"/messages", `{"text":"go on","metadata":{"k":1}}`, "Idempotency-Key: k")
	said.wants(t, 202)
	s.do("POST", run+"/messages", `{"text":"go on","metadata":{"k":1}}`, "Idempotency-Key: k").wants(t, 202)
	s.do("POST", run+"/messages", `{"text":"another"}`, "Idempotency-Key: k").wants(t, 422)
	s.do("POST", run+"/messages", `{"id":"m2","parts":[{"data":{"n":[1.0]}},{"text":"x","media_type":"text/markdown"}]}`).wants(t, 202)
	listed := s.do("GET", run+"/messages?limit=1", "")
	listed.wants(t, 200)
	var page api.MessagePage
	must(t, json.Unmarshal([]byte(listed.body), &page))
	if len(page.Messages) != 1 || page.Next == nil || page.Messages[0].Parts[0].Text != "go on" || page.Messages[0].N == 0 {
		t.Errorf("%s", listed.body)
	}
	if rest := s.do("GET", run+"/messages?after="+fmt.Sprint(*page.Next), ""); !strings.Contains(rest.body, `"data":{"n":[1.0]}`) || strings.Contains(rest.body, "go on") {
		t.Errorf("the rest is %s", rest.body)
	}
	for body, want := range map[string]int{
		`{}`: 422, `{"text":"a","data":1}`: 422, `{"text":1}`: 400, `{"text":"a","role":"agent"}`: 400, `{"parts":[{"file":{"name":"a"}}]}`: 422, `{"parts":[]}`: 422,
		`{"text":"a","metadata":[]}`: 422, `[]`: 400, `{"text":"` + strings.Repeat("x", api.MaxPartBytes+1) + `"}`: 413,
	} {
		s.do("POST", run+"/messages", body).wants(t, want)
	}
	s.do("GET", run+"/messages?after=-1", "").wants(t, 400)
	s.do("GET", run+"/artifacts", "").wants(t, 200)
	s.do("GET", run+"/artifacts/a/b/c", "").wants(t, 404)
	unknown := "/v1/runs/00000000-0000-7000-8000-000000000000"
	for _, place := range []string{"/messages", "/artifacts", "/artifacts/a/b"} {
		s.do("GET", unknown+place, "").wants(t, 404)
	}
	s.do("POST", unknown+"/messages", `{"text":"a"}`).wants(t, 404)
	s.do("POST", run+"/cancel", "").wants(t, 202)
	s.do("GET", run+"/events", "").wants(t, 200) // until its end
	s.do("POST", run+"/messages", `{"text":"a"}`).wants(t, 409)
	if strings.Contains(s.log.String(), "go on") {
		t.Error("the log has a message")
	}
}

func TestRunsOfAContext(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	made := s.do("POST", "/v1/runs?wait=1m", `{"unit":"actor","input":{},"context":"c 1"}`)
	made.wants(t, 200)
	if !strings.Contains(made.body, `"context":"c 1"`) {
		t.Errorf("%s", made.body)
	}
	s.do("POST", "/v1/runs?wait=1m", `{"unit":"actor","input":{}}`).wants(t, 200)
	listed := s.do("GET", "/v1/runs?context=c+1", "")
	var page api.Page
	must(t, json.Unmarshal([]byte(listed.body), &page))
	if len(page.Runs) != 1 {
		t.Errorf("%s", listed.body)
	}
	s.do("POST", "/v1/runs", `{"unit":"actor","input":{},"context":"a\nb"}`).wants(t, 422)
	s.do("POST", "/v1/runs", `{"unit":"actor","input":{},"context":1}`).wants(t, 400)
}

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
