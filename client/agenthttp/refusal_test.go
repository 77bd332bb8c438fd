package agenthttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
)

func TestRefusals(t *testing.T) {
	shaped, wrapped := agenttest.Refusal("r-1"), map[string]any{"detail": agenttest.Refusal("r-1")}
	cases := []struct {
		status int
		body   any
		kind   fault.Kind
		shaped bool
	}{
		{422, shaped, fault.Input, true},
		{400, wrapped, fault.Input, true},
		{404, map[string]any{"detail": "nothing here"}, fault.NotFound, false},
		{401, nil, fault.Unauthorized, false},
		{403, shaped, fault.Forbidden, true},
		{409, shaped, fault.Conflict, true},
		{413, shaped, fault.TooLarge, true},
		{418, shaped, fault.Unsupported, true},
		{429, shaped, fault.Busy, true},
		{500, wrapped, fault.Unavailable, true},
		{501, shaped, fault.Unsupported, true},
		{503, shaped, fault.Unavailable, true},
		{504, shaped, fault.Deadline, true},
		{422, map[string]any{"request_id": "another", "ok": false}, fault.Input, false},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			agent := against(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Reply(w, c.status, c.body) })
			for _, call := range []func() (Response, error){
				func() (Response, error) { return agent.Run(t.Context(), asked) },
				func() (Response, error) { return agent.Stream(t.Context(), asked, func(Event) {}) },
			} {
				got, err := call()
				var refused *Refusal
				if !errors.As(err, &refused) || refused.Status != c.status {
					t.Errorf("%v isn't a refusal with its status", err)
				}
				if !fault.Is(err, c.kind) || got.OK || (got.RequestID == "r-1") != c.shaped || fault.Public(err).Hint == "" {
					t.Errorf("%+v %v", got, err)
				}
			}
		})
	}
}

func TestTheReasonOfAFailure(t *testing.T) {
	for member, want := range map[string]string{
		`"error":"no table"`:                        "no table",
		`"error":{"code":"x","message":"no table"}`: "no table",
		`"error":{"code":"x"},"message":"no table"`: "no table",
		`"detail":{"message":"no table"}`:           "no table",
		`"error":null,"detail":["x"]`:               "",
		`"detail":[{"type":"missing","loc":["body","inputs",0,"text"],"msg":"Field required","input":"canary"},{"msg":"too long"},7]`: "body.inputs.0.text: Field required; too long",
		`"detail":[` + strings.Repeat(`{"msg":"m"},`, 20) + `{"msg":"n"}]`:                                                            strings.Repeat("m; ", 9) + "m",
		`"error":{"message":{"deep":1}},"detail":"the last one"`:                                                                      "the last one",
	} {
		got, err := ParseResponse([]byte(`{"request_id":"r-1","ok":false,`+member+`}`), asked)
		if err != nil || got.Reason != want {
			t.Errorf("%s: %q %v", member, got.Reason, err)
		}
	}
	if got, err := ParseResponse([]byte(`{"request_id":"r-1","ok":true,"outputs":{},"message":"done"}`), asked); err != nil || got.Reason != "" {
		t.Errorf("a success has the reason %q: %v", got.Reason, err)
	}
}

func TestTheCodeOfAFailure(t *testing.T) {
	for member, want := range map[string]string{
		`"error":{"code":"VALIDATION_ERROR","message":"m"}`: "VALIDATION_ERROR",
		`"detail":{"code":"A"}`:                             "A",
		`"code":"B","error":"text"`:                         "B",
		`"error_code":"C"`:                                  "C",
		`"error":{"code":7}`:                                "",
		`"message":"m"`:                                     "",
	} {
		got, err := ParseResponse([]byte(`{"request_id":"r-1","ok":false,`+member+`}`), asked)
		if err != nil || got.Code != want {
			t.Errorf("%s: %q %v", member, got.Code, err)
		}
	}
}

func TestARefusalOfAnotherShapeHasItsReason(t *testing.T) {
	for body, want := range map[string]Response{
		`{"detail":[{"loc":["body","text"],"msg":"Field required"}]}`:                           {Reason: "body.text: Field required"},
		`{"detail":"nothing here"}`:                                                             {Reason: "nothing here"},
		`{"detail":{"code":"VALIDATION_ERROR","message":"no text"}}`:                            {Code: "VALIDATION_ERROR", Reason: "no text"},
		`{"error":{"code":"VALIDATION_ERROR","message":"no text"}}`:                             {Code: "VALIDATION_ERROR", Reason: "no text"},
		`{"request_id":"another","error":{"code":"x","message":"of somebody else"}}`:            {},
		`{"request_id":"r-1","error":{"code":"x","message":"m"}}`:                               {Code: "x", Reason: "m"},
		`{"request_id":"r-1","status":"error","outputs":{},"error":{"code":"x","message":"m"}}`: {RequestID: "r-1", Status: "error", Outputs: Object("{}"), Code: "x", Reason: "m"},
		`<html>`: {},
	} {
		got, err := against(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, body)
		}).Run(t.Context(), asked)
		if diff := cmp.Diff(want, got); diff != "" || !fault.Is(err, fault.Input) || strings.Contains(err.Error(), "text") {
			t.Errorf("%s: %v\n%s", body, err, diff)
		}
	}
}
