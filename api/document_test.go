package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/schemas"
)

// violations holds a value's JSON against a schema of ours.
func violations(t *testing.T, schema string, v any) []fault.Finding {
	t.Helper()
	compiled, findings := contract.Compile(schemas.Get(schema))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := contract.Decode(raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(payload)
}

var someUse = &ModelUsage{
	Calls: 1, Tokens: ModelTokens{Input: 2, Cached: 3, CacheWrite: 4, Output: 5, Reasoning: 6}, Charged: 7, Cost: 21_200_000, Estimated: 8, Unlisted: 10,
	Tree: &ModelTotal{Charged: 9, Cost: 1_500_000_000},
}

var someUsage = &Usage{
	CPUSeconds: 0.25, CPUPercent: 12.5, PeakMemoryBytes: 4096,
	MemoryBytes: new(int64(5)), DiskReadBytes: new(int64(6)), DiskWriteBytes: new(int64(7)),
}

const someID = "01999999-aaaa-7bbb-8ccc-dddddddddddd"

// full are documents in which every field is set.
var full = map[string]any{
	"run": Record{
		ID: someID, Unit: "u", Kind: "capsule", Version: "v", Parent: "p", Root: "r", Session: "s", Turn: 2, Context: "c", Schedule: &ScheduleRef{Name: "n", Planned: noon}, Step: "s", RerunOf: "o", Worker: "w", By: "t", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Owner: &Owner{Team: "a", Identity: "token:t"},
		Metadata: map[string]string{"user_id": "ada"}, Input: json.RawMessage(`{"a":1}`), InputMasked: true,
		State: Failed, Status: Failed.Status(), Outcome: CapsuleError, ExitCode: new(1), Output: json.RawMessage(`{"b":[1.0]}`),
		Waiting:  fullWaiting,
		Question: &OpenQuestion{ID: "q", Kind: QuestionAuth, Until: &noon}, MaxRetries: 2, TimeoutMS: 3, Previous: Running, ChangedAt: &noon,
		Files:   []File{{Name: "a/b", Path: "/x/a/b", SizeBytes: 3, SHA256: digest, Pointer: new("/f")}},
		Changes: &ChangeCounts{Files: 2, Bytes: 3, Partial: true},
		Error:   someError,
		Retries: 1, Attempts: []Attempt{{Number: 1, Outcome: OutOfMemory, ExitCode: new(137), Error: someError, Usage: someUsage, FinishedAt: noon}},
		Flow: &FlowCounts{Steps: 3, Failed: 1, Open: 1, Action: "a"}, Versions: map[string]string{"c": "v"},
		Warnings: []string{"w"}, Calls: []Call{{ID: "c", Unit: "u", Step: "s", State: Failed, Outcome: TimedOut, ErrorKind: "timeout", Files: 1, CreatedAt: noon, FinishedAt: &noon, TotalMS: 2, Calls: []Call{{ID: "d", Unit: "u", Step: "s", State: Failed, Outcome: Success, ErrorKind: "k", Files: 1, CreatedAt: noon, FinishedAt: &noon, TotalMS: 1, Calls: []Call{}}}}},
		Upstreams: []UpstreamUse{{Name: "svc", Requests: 3, Refused: 1, BytesIn: 4, BytesOut: 5}},
		ToolCalls: []ToolCall{{Tool: "search", MS: 1.5, Error: true}},
		Egress:    []EgressRow{{Host: "a.example", Port: 443, Tunnels: 1, BytesIn: 2, BytesOut: 3, Refused: 4}},
		Models:    someUse,
		Image:     ImageRef{Ref: "r", ID: "i"}, Container: &Container{ID: "c", WaitedMS: 1.5, Served: 2},
		Timings: Timings{1, 2, 3, 4, 5, 6, 7}, CostUSD: "0.01", AgentUsage: json.RawMessage(`{"tokens":1}`), AgentSession: "s",
		Usage: someUsage, Log: LogStats{Bytes: 9, Truncated: true},
		Transitions: []Transition{{State: Idle, At: noon, Reason: "r", Attempt: 2}}, CreatedAt: noon, StartedAt: &noon, FinishedAt: &noon,
	},
	"page": Page{Next: new("n"), Runs: []Summary{{
		ID: someID, Unit: "u", Kind: "capsule", Parent: someID, Root: someID, By: "ci", Owner: &Owner{Team: "a", Identity: "token:ci"}, Metadata: map[string]string{"k": "v"},
		Waiting: fullWaiting, State: Failed, Status: Failed.Status(), Outcome: CapsuleError, ExitCode: new(1), Error: someError, Retries: 1, Timings: Timings{1, 2, 3, 4, 5, 6, 7},
		Models:    someUse,
		CreatedAt: noon, StartedAt: &noon, FinishedAt: &noon,
	}}},
	"pool": PoolStats{Size: 1, Waiting: 2, MemoryBytes: 3, UsedBytes: 4, Units: []PoolUnit{{
		Unit: "u", Wanted: 1, Fixed: 2, Starting: 3, Hits: 4, Misses: 5, Refills: 6, Failures: 7, Discarded: 8,
		Waiting: []PoolSandbox{{ID: someID, Container: "c", Loaded: true, Since: noon}},
	}}},
	"stats": Stats{
		Since: noon, Slots: 4, Busy: 1, Queued: 2, OldestWait: 1.5, Pool: PoolSums{Size: 8, Waiting: 3}, Memory: MemoryStats{LimitBytes: 1, RunBytes: 2, PoolBytes: 3},
		Disk: DiskStats{FreeBytes: 1, StoredRuns: 2, StoredBytes: 3},
		Units: []UnitStats{{
			Unit: "u", Live: map[Status]int64{Queued: 1}, Ended: map[Outcome]int64{Success: 2}, Queued: 1,
			Rate: 0.5, P50: 1.5, P95: 2.5, ExpectedWait: 3.5,
		}},
	},
	"schedule": Schedule{
		Name: "n", ScheduleSpec: fullSpec, Files: []File{{Name: "a", Path: "/x/a", SizeBytes: 3, SHA256: digest, Pointer: new("/f")}},
		By: "ci", Owner: &Owner{Team: "a", Identity: "token:ci"}, State: ScheduleActive, Next: &noon, Problem: "p", Fired: 2, CreatedAt: noon, ChangedAt: noon,
		Last: &Occurrence{Planned: noon, Fired: noon, LateMS: 1, Outcome: OccurrenceStarted, Run: someID, Reason: "r", Manual: true},
	},
	"schedulespec": fullSpec,
	"submission":   Submission{Unit: "u", Session: "s", Input: json.RawMessage(`{"a":1}`), Timeout: "30s", Metadata: map[string]string{"k": "v"}, Env: map[string]string{"E": "1"}, Dir: "d", Unattended: true, Context: "c"},
	"unit": Unit{
		Name: "u", Kind: "capsule", Version: "v", Description: "d", Source: "directory", Origin: "/o", By: "ada", Owner: &Owner{Team: "a", Identity: "token:ada"}, Image: "i", Concurrency: 1, Access: "read-only",
		Disabled: true, CalledBy: []string{"c"}, Status: &UnitStatus{Running: 1, Waiting: 2, Sessions: 3, Schedules: []string{"nightly"}, Next: &NextTime{Schedule: "nightly", At: noon}, Lately: &Lately{Runs: 3, Succeeded: 2, P50: 1.5, P95: 2.5, Models: &ModelTotal{Charged: 1, Cost: 2}}, LastRun: &LastRun{ID: someID, State: Failed, Outcome: TimedOut, CreatedAt: noon}},
		Agent: &UnitAgent{
			Type: "file-file", Enabled: true, Command: []string{"c"}, Program: &AgentProgram{Found: true, Problem: "p", Hint: "h"}, Flags: map[string]any{"f": "g"}, Dir: "/d", Mode: "interactive", Input: "file", Output: "file",
			InputFile: "i", OutputFile: "o", Protocol: "acp", Env: []string{"E"}, CallerEnv: []string{"C"}, Approval: "ask", Approvers: []string{"team:ops"}, Session: &AgentSession{Idle: "30m", KeepAlive: true},
		},
		Since: &noon, Problem: &UnitProblem{Message: "m", Hint: "h", Findings: someError.Findings},
		Policy: &UnitPolicy{
			Timeout: "1m", MaxTimeout: "1h", Retries: 1, MayCall: []string{"c"}, Network: "bridge", Egress: []string{"a.example"}, ReadOnly: true, Runtime: "r",
			MemoryBytes: 1, CPUs: 1.5, PIDs: 2, OutputBytes: 3, Reuse: 4, Warm: 5, BuildNetwork: "none", Env: []string{"E"}, Upstreams: []string{"svc"}, Secrets: []string{"S"}, Models: []string{"m"},
			Lowered: []LoweredWish{{Setting: "limits.memory", Asked: "2B", Holds: "1B", Rule: "policy.memory"}},
			Refusal: &UnitRefusal{Message: "m", Hint: "h"},
		},
		InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
	},
}

var fullSpec = ScheduleSpec{
	Unit: "u", Input: json.RawMessage(`{"a":1}`), Metadata: map[string]string{"k": "v"}, Timeout: "30s", Ask: true, Note: "n",
	Cron: "@daily", Timezone: "Europe/Berlin", Every: "15m", Start: &noon, At: "2026-12-01T09:00",
	Missed: MissedAll, Grace: "1h", Overlap: OverlapQueue, Jitter: "30s", Until: &noon, Count: 3,
}

var fullWaiting = &Waiting{Place: 2, Reason: "slots", Message: "m", Since: noon}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var someError = &RunError{
	Category: CategoryAgent, Kind: "capsule_error", Type: "ValueError", Step: "s", Message: "m", Hint: "h",
	Findings: []fault.Finding{{File: "f", Line: 1, Pointer: "/p", Message: "m", Hint: "h", Warning: true}},
}

// empty are documents in which nothing is set that may be left out.
var empty = map[string]any{
	"run":          Record{ID: someID, Unit: "u", State: Idle, Files: []File{}, Transitions: []Transition{}},
	"page":         Page{Runs: []Summary{}},
	"pool":         PoolStats{Units: []PoolUnit{}},
	"stats":        Stats{Units: []UnitStats{}},
	"schedule":     Schedule{Name: "n", ScheduleSpec: ScheduleSpec{Unit: "u", Cron: "@daily"}, State: ScheduleEnded},
	"schedulespec": ScheduleSpec{Unit: "u", Cron: "@daily"},
	"submission":   Submission{Unit: "u", Input: json.RawMessage(`{}`)},
	"unit":         Unit{Name: "u", Kind: "capsule", Source: "upload", Access: "read-only"},
}

// TestDocumentsKeepTheirBytes compares with what earlier versions wrote to stores and
// wires. A field may be added to a golden file; none may change or go.
func TestDocumentsKeepTheirBytes(t *testing.T) {
	for set, documents := range map[string]map[string]any{"full": full, "empty": empty} {
		for name, document := range documents {
			t.Run(set+" "+name, func(t *testing.T) {
				if set == "full" {
					eachFieldIsSet(t, reflect.ValueOf(document), name)
				}
				got, err := json.MarshalIndent(document, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				golden := filepath.Join("testdata", name+"."+set+".json")
				if os.Getenv("UPDATE_GOLDEN") != "" {
					_ = os.WriteFile(golden, append(got, '\n'), 0o644)
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(string(want), rewritten(t, want, document)); diff != "" {
					t.Errorf("read and written again it is another:\n%s", diff)
				}
				for _, f := range violations(t, name, document) {
					t.Errorf("it breaks its schema: %s", f)
				}
			})
		}
	}
}

// rewritten reads a golden as what it is, and writes that again.
func rewritten(t *testing.T, golden []byte, document any) string {
	t.Helper()
	read := reflect.New(reflect.TypeOf(document))
	if err := json.Unmarshal(golden, read.Interface()); err != nil {
		t.Fatal(err)
	}
	raw, err := json.MarshalIndent(read.Interface(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// eachFieldIsSet keeps the full documents full when a type grows.
func eachFieldIsSet(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	if _, isTime := v.Interface().(time.Time); isTime {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		eachFieldIsSet(t, v.Elem(), path)
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
			eachFieldIsSet(t, v.Index(0), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" {
				continue
			}
			field, name := v.Field(i), path+"."+v.Type().Field(i).Name
			if field.IsZero() {
				t.Errorf("%s isn't set", name)
				continue
			}
			eachFieldIsSet(t, field, name)
		}
	}
}

func TestOutcomeIsNullUntilThereIsOne(t *testing.T) {
	for outcome, want := range map[Outcome]string{"": "null", Success: `"success"`} {
		if raw, err := json.Marshal(outcome); err != nil || string(raw) != want {
			t.Errorf("%q is written %s, error %v", outcome, raw, err)
		}
	}
	var record Record
	if err := json.Unmarshal([]byte(`{"outcome":null}`), &record); err != nil || record.Outcome != "" {
		t.Errorf("null is read as %q, error %v", record.Outcome, err)
	}
}
