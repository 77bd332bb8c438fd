package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 500, time.UTC)

// told is the data of every type of event, with the bytes that stores hold of it.
var told = []struct {
	data EventData
	raw  string
}{
	{Transition{State: Running, At: noon, Reason: "r", Attempt: 2}, `{"state":"running","at":"2026-01-02T12:00:00.0000005Z","reason":"r","attempt":2}`},
	{Transition{State: Idle, At: noon}, `{"state":"idle","at":"2026-01-02T12:00:00.0000005Z"}`},
	{WarningEvent{Message: "m"}, `{"message":"m"}`},
	{TokensEvent{Answer: "a", Kind: AgentText, Text: "t"}, `{"answer":"a","kind":"text","text":"t"}`},
	{TokensEvent{Answer: "a", Kind: AgentThought, Field: "f", Text: "t", Lost: true}, `{"answer":"a","kind":"thought","field":"f","text":"t","lost":true}`},
	{BuildEvent{Step: "sha256:1", Name: "[1/2] FROM x", State: "started"}, `{"step":"sha256:1","name":"[1/2] FROM x","state":"started"}`},
	{BuildEvent{Step: "s", State: "done"}, `{"step":"s","state":"done"}`},
	{
		AttemptEvent{Attempt{Number: 1, Outcome: SystemError, Error: &RunError{Category: CategoryTransient, Kind: "unavailable", Message: "m"}, FinishedAt: noon}, 1500},
		`{"number":1,"outcome":"system_error","exit_code":null,"error":{"category":"Transient","kind":"unavailable","message":"m"},"finished_at":"2026-01-02T12:00:00.0000005Z","retry_in_ms":1500}`,
	},
	{
		AttemptEvent{Attempt{Number: 2, Outcome: OutOfMemory, ExitCode: new(137), Usage: &Usage{CPUSeconds: 0.5, PeakMemoryBytes: 7}, FinishedAt: noon}, 0},
		`{"number":2,"outcome":"out_of_memory","exit_code":137,"error":null,"usage":{"cpu_seconds":0.5,"peak_memory_bytes":7},"finished_at":"2026-01-02T12:00:00.0000005Z","retry_in_ms":0}`,
	},
	{
		Call{ID: "id", Unit: "u", State: Idle, CreatedAt: noon},
		`{"id":"id","unit":"u","state":"idle","outcome":null,"files":0,"created_at":"2026-01-02T12:00:00.0000005Z","finished_at":null,"total_ms":0}`,
	},
	{
		Call{ID: "id", Unit: "u", State: Failed, Outcome: CapsuleError, ErrorKind: "capsule_error", Files: 2, CreatedAt: noon, FinishedAt: &noon, TotalMS: 1.5, Calls: []Call{}},
		`{"id":"id","unit":"u","state":"failed","outcome":"capsule_error","error_kind":"capsule_error","files":2,"created_at":"2026-01-02T12:00:00.0000005Z","finished_at":"2026-01-02T12:00:00.0000005Z","total_ms":1.5}`,
	},
	{ProgressEvent{Percent: new(0.0), Step: "s", Message: "m"}, `{"percent":0,"step":"s","message":"m"}`},
	{ProgressEvent{}, `{}`},
	{CancelEvent{Reason: "r"}, `{"reason":"r"}`},
	{CancelEvent{}, `{}`},
	{
		NodeEvent{Address: "a", Try: 1, State: FailedStep, Run: "r", Cached: true, Action: "error", ErrorKind: "timeout"},
		`{"address":"a","try":1,"state":"failed","run":"r","cached":true,"action":"error","error_kind":"timeout"}`,
	},
	{NodeEvent{Address: "a", Try: 1, State: SkippedStep}, `{"address":"a","try":1,"state":"skipped"}`},
	{QuestionEvent{ID: "q", Address: "a", State: QuestionClosed}, `{"id":"q","address":"a","state":"closed"}`},
	{QuestionEvent{ID: "q", Address: "a", State: QuestionAnswered, Action: "yes", Token: "t"}, `{"id":"q","address":"a","state":"answered","action":"yes","token":"t"}`},
	{EgressEvent{Host: "a.example", Port: 443}, `{"host":"a.example","port":443}`},
	{EgressEvent{Host: "a.example", Port: 80, Refused: "egress"}, `{"host":"a.example","port":80,"refused":"egress"}`},
	{EndEvent{State: Completed, Outcome: Success}, `{"state":"completed","outcome":"success"}`},
	{
		MessageEvent{ID: "m", Role: RoleUser, Parts: allParts, Metadata: json.RawMessage(`{"k":1.0}`), At: noon},
		`{"id":"m","role":"user","parts":` + rawParts + `,"metadata":{"k":1.0},"at":"2026-01-02T12:00:00.0000005Z"}`,
	},
	{
		ArtifactEvent{ID: "a", Name: "n", Parts: allParts, Append: true, Last: true, At: noon},
		`{"id":"a","name":"n","parts":` + rawParts + `,"append":true,"last":true,"at":"2026-01-02T12:00:00.0000005Z"}`,
	},
	{AgentEvent{Kind: "tool", Text: "t", ID: "1"}, `{"kind":"tool","text":"t","id":"1"}`},
	{
		AgentEvent{Kind: "tool", ID: "1", ToolNews: ToolNews{Arguments: `{"a":"b"}`, State: ToolFailed, Lines: 3}},
		`{"kind":"tool","id":"1","arguments":"{\"a\":\"b\"}","state":"failed","output_lines":3}`,
	},
	{
		UpstreamEvent{At: noon, Name: "u", Status: 403, Rule: "r", BytesIn: 1, BytesOut: 2, MS: 1.5},
		`{"at":"2026-01-02T12:00:00.0000005Z","name":"u","status":403,"rule":"r","bytes_in":1,"bytes_out":2,"ms":1.5}`,
	},
	{
		ModelCall{
			N: 1, At: noon, Dialect: "chat", Model: "m", Provider: "p", Upstream: "up", Source: "provider", Stream: true, Status: 200, Rule: "r",
			Attempts: 2, Tokens: ModelTokens{Input: 1, Cached: 2, CacheWrite: 3, Output: 4, Reasoning: 5}, Charged: 6, Cost: 10_000, Estimated: true,
			FirstMS: 0.5, MS: 1.5,
		},
		`{"n":1,"at":"2026-01-02T12:00:00.0000005Z","dialect":"chat","model":"m","provider":"p","upstream":"up","source":"provider","stream":true,` +
			`"status":200,"rule":"r","attempts":2,"tokens":{"input":1,"cached":2,"cache_write":3,"output":4,"reasoning":5},"charged":6,` +
			`"cost":0.00001,"estimated":true,"first_ms":0.5,"ms":1.5}`,
	},
}

var allParts = []Part{
	{Text: "t", MediaType: "text/plain"}, {Data: json.RawMessage(`[1.0]`)}, {File: &File{Name: "f", SizeBytes: 1, SHA256: "d"}},
}

const rawParts = `[{"text":"t","media_type":"text/plain"},{"data":[1.0]},{"file":{"name":"f","size_bytes":1,"sha256":"d"}}]`

func TestEventDataIsWrittenAsStoresHoldIt(t *testing.T) {
	for _, c := range told {
		raw, err := json.Marshal(c.data)
		if err != nil || string(raw) != c.raw {
			t.Errorf("%s: %s, error %v, want %s", c.data.EventType(), raw, err, c.raw)
		}
		document := map[string]any{"id": 1, "event": c.data.EventType(), "data": c.data}
		for _, f := range violations(t, "event", document) {
			t.Errorf("%s %s: %s", c.data.EventType(), raw, f)
		}
	}
}

func TestEveryEventIsReadByItsType(t *testing.T) {
	missing := map[EventType]bool{
		EventState: true, EventWarning: true, EventBuild: true, EventAttempt: true,
		EventCall: true, EventProgress: true, EventCancel: true, EventNode: true, EventQuestion: true, EventEgress: true, EventEnd: true,
		EventMessage: true, EventArtifact: true, EventAgent: true, EventTokens: true, EventUpstream: true, EventModel: true,
	}
	for _, c := range told {
		got, err := Event{Seq: 1, Type: c.data.EventType(), Data: json.RawMessage(c.raw)}.Decode()
		want := c.data
		if call, ok := want.(Call); ok {
			call.Calls = nil // an empty list isn't written
			want = call
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v %s", c.data.EventType(), err, diff)
		}
		delete(missing, c.data.EventType())
	}
	for kind := range missing {
		t.Errorf("no event of type %s is read", kind)
	}
}

func TestEventsThatCannotBeRead(t *testing.T) {
	if data, err := (Event{Seq: 1, Type: "a newer one", Data: json.RawMessage(`[1]`)}).Decode(); data != nil || err != nil {
		t.Errorf("of a newer server: %v, error %v", data, err)
	}
	for _, c := range told {
		kind := c.data.EventType()
		for _, raw := range []string{"", "{", "[1]", `"x"`} {
			if data, err := (Event{Seq: 1, Type: kind, Data: json.RawMessage(raw)}).Decode(); err == nil || data != nil {
				t.Errorf("%s %q: %v", kind, raw, data)
			}
		}
	}
}
