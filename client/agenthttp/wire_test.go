package agenthttp

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func TestAbsentFieldsAreLeftOut(t *testing.T) {
	cases := []struct {
		name     string
		document any
		want     string
	}{
		{"the shortest request", Request{RequestID: "r", TaskType: "t"}, `{"request_id":"r","task_type":"t"}`},
		{"a null that was read", Request{RequestID: "r", TaskType: "t", Inputs: Object("null")}, `{"request_id":"r","task_type":"t"}`},
		{"inputs that are empty", Request{RequestID: "r", TaskType: "t", Inputs: Object("{}")}, `{"request_id":"r","task_type":"t","inputs":{}}`},
		{
			"a whole request",
			Request{RequestID: "r", TaskType: "t", WorkflowID: "w", StageID: "s", UserID: "u", Mode: "LIVE", RiskTier: "x", DomainID: "d", Inputs: Object(`{"a": "<"}`), Budgets: Object(`{"n":1.0}`)},
			`{"request_id":"r","task_type":"t","workflow_id":"w","stage_id":"s","user_id":"u","mode":"LIVE","risk_tier":"x","domain_id":"d","inputs":{"a":"<"},"budgets":{"n":1.0}}`,
		},
		{"a refusal", Response{RequestID: "r", Warnings: []string{"w"}}, `{"request_id":"r","ok":false,"outputs":{},"warnings":["w"]}`},
		{"a success", Response{RequestID: "r", Status: StatusOK, OK: true, Outputs: Object(`{"a":null}`)}, `{"request_id":"r","status":"ok","ok":true,"outputs":{"a":null},"warnings":[]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := strictjson.Encode(c.document)
			if diff := cmp.Diff(c.want, string(got)); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestParseRequest(t *testing.T) {
	got, err := ParseRequest([]byte(`{"request_id":"r","task_type":"t","user_id":null,"inputs":{"n":1.0},"budgets":null,"Mode":"LIVE","more":[1]}`))
	want := Request{RequestID: "r", TaskType: "t", Inputs: Object(`{"n":1.0}`)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestParseRequestTellsAllAtOnce(t *testing.T) {
	_, err := ParseRequest([]byte(`{"request_id":"","mode":7,"inputs":[1],"budgets":"x"}`))
	want := []fault.Finding{
		violation("budgets", "it is not an object"), violation("inputs", "it is not an object"), violation("mode", "it is not a string"),
		violation("request_id", "it is required and must not be empty"), violation("task_type", "it is required and must not be empty"),
	}
	if diff := cmp.Diff(want, fault.Public(err).Findings); diff != "" || !fault.Is(err, fault.Input) {
		t.Errorf("%v %s", err, diff)
	}
	for _, raw := range []string{"", "null", "[]", "{", `{"a":"` + "\xff" + `"}`} {
		if _, err := ParseRequest([]byte(raw)); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestDocumentsAreBoundedInDepth(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(`{"a":"[[\"[",` + `"b":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
	}
	if _, err := document.Read(nested(strictjson.MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := document.Read(nested(strictjson.MaxDepth + 1)); !errors.Is(err, document.ErrTooDeep) {
		t.Error(err)
	}
}
