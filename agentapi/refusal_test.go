package agentapi

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/agent-on-demand/aod/agentapi/internal/agenttest"
	"github.com/agent-on-demand/aod/fault"
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
					t.Errorf("%v is no refusal with its status", err)
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
		`"error":"no table"`:                                     "no table",
		`"error":{"code":"x","message":"no table"}`:              "no table",
		`"error":{"code":"x"},"message":"no table"`:              "no table",
		`"detail":{"message":"no table"}`:                        "no table",
		`"error":null,"detail":["x"]`:                            "",
		`"error":{"message":{"deep":1}},"detail":"the last one"`: "the last one",
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
