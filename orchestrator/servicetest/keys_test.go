package servicetest_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/access"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// keySession is the id of a session: the fingerprints of its turns are made of it.
const keySession = "01900000-0000-7000-8000-000000000001"

// everything is said in a message.
var everything = api.MessageEvent{
	ID: "m", Role: api.RoleUser, Metadata: []byte(`{"b": 1.0, "a": "é<&>"}`),
	Parts: []api.Part{{Text: "a text"}, {Data: []byte(`{"n": 1e3}`), MediaType: "application/json"}},
}

// withFile is everything, with a file of the submission.
func withFile() *api.MessageEvent {
	m := everything
	m.Parts = append(slices.Clone(m.Parts), api.Part{File: &api.File{Name: "in.txt"}, MediaType: "text/plain"})
	return &m
}

// submissions are by their keys. Each asks for something else, and the last ones for all at once.
func submissions(h *servicetest.Harness) map[string]spool.Submission {
	h.Helper()
	start := capsule.AgentStart{Env: map[string]string{"MODE": "fast", "LANG": "é"}, Dir: "sub"}
	metadata := map[string]string{"user_id": "ada", "b": "<&>"}
	return map[string]spool.Submission{
		"nothing":    {Unit: "any"},
		"input":      {Unit: "any", Input: []byte(`{ "b": 1.0, "a": "é<&>",  "big": 12345678901234567890 }`)},
		"files":      {Unit: "teller", Files: spoolOf(h, "doc", "in.txt", "content")},
		"timeout":    {Unit: "any", Timeout: 90 * time.Second},
		"within":     {Unit: "any", Within: 1500 * time.Millisecond},
		"unattended": {Unit: "any", Unattended: true},
		"metadata":   {Unit: "any", Metadata: metadata},
		"context":    {Unit: "any", Context: "thread é"},
		"message":    {Unit: "any", Message: &everything},
		"start":      {Unit: "edits", Input: []byte(`{"message": "x"}`), Start: start},
		"project":    {Unit: "edits", Input: []byte(`{"message": "x"}`), Files: projectOf(h)},
		"session":    {Session: keySession, Input: []byte(`{"message": "x"}`)},
		"not asked for": {
			Unit: "any", TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
		"all of a capsule": {
			Unit: "teller", Input: []byte(`{"n": 7}`), Files: spoolOf(h, "doc", "in.txt", "content"), Timeout: time.Minute,
			Within: time.Second, Unattended: true, Metadata: metadata, Context: "thread", Message: withFile(),
		},
		"all of an agent": {
			Unit: "edits", Input: []byte(`{"message": "x"}`), Files: projectOf(h), Timeout: time.Minute, Within: time.Second,
			Unattended: true, Start: start, Metadata: metadata, Context: "thread", Message: &everything,
		},
		"all of a turn": {
			Unit: "says", Session: keySession, Input: []byte(`{"message": "x"}`), Timeout: time.Minute, Within: time.Second,
			Unattended: true, Metadata: metadata, Context: "thread", Message: &everything,
		},
	}
}

// Clients send again what they heard no answer to, perhaps to a newer version: what is stored of the
// first request has to be what that version makes of the second.
func TestKeysHaveTheSameFingerprints(t *testing.T) {
	t.Parallel()
	says := func(_ context.Context, box servicetest.Sandbox) int { box.Print("said"); return 0 }
	h := servicetest.New(t,
		servicetest.Capsule("any", "", servicetest.AnyContract, empty), servicetest.Capsule("teller", "", teller, empty),
		agentOption("edits", "agent: {command: [edit], caller_env: [MODE, LANG]}\n", says),
		agentOption("says", "agent: {command: [say], mode: interactive, resume: [again]}\n", says),
		servicetest.Capsule("keeps", "", servicetest.AnyContract, keepTelling),
		servicetest.Tools("keeps", "- {name: any, capsule: any}\n"),
		servicetest.Flow("flow", "", `
start: one
nodes:
  one: {run: any, with: {a: "é<&>"}, cache: 1h, next: each}
  each: {map: [1, 2.5], parallel: 1, run: any, with: {n: "${{ item }}"}}
`),
		servicetest.Flow("asks", "", "start: a\nnodes:\n  a: {ask: \"Sure?\"}\n"))
	giveSessionID(h)
	resent := runs{
		heard: h.Submit("worker", servicetest.Orders{Mark: "heard", Until: "gate"}),
		flow:  h.Await(h.Submit("flow", map[string]any{})).ID,
		asks:  h.Submit("asks", map[string]any{}),
	}
	h.Await(h.Submit("keeps", map[string]any{}))
	h.Until(resent.heard, servicetest.Running)
	asked(h, resent.asks)
	resent.question = h.Until(resent.asks, func(r api.Record) bool { return r.Question != nil }).Question.ID
	first := maps.Collect(resent.sendAll(h))
	h.Restart()
	for key, id := range resent.sendAll(h) {
		if first[key] != id {
			t.Errorf("what has the key %q was asked for twice", key)
		}
	}
	h.OpenGate("gate")
	h.Within("all is over", func() bool { return rests(h) })
	h.Stop()
	words := newWords(h, map[string]string{keySession: "<session>"})
	keys := words.normal(t, takeSnapshot(h)).Rows["keys"]
	for _, key := range keys {
		delete(key, "run")
	}
	wantGolden(t, "keys", snapshot{Rows: map[string][]map[string]any{"keys": keys}})
}

// empty gives nothing.
func empty(_ context.Context, box servicetest.Sandbox) int {
	box.Output(map[string]any{})
	return 0
}

// keepTelling says all that has a key.
func keepTelling(ctx context.Context, box servicetest.Sandbox) int {
	for range 2 {
		for key, asked := range map[string][2]string{
			"text": {"/artifact", `{"id": "a", "name": "report", "text": "é<&>", "media_type": "text/plain"}`},
			"data": {"/artifact", `{"name": "d", "data": {"b": 1.0, "a": [1e3]}, "append": true, "last": true}`},
			"call": {"/handoff", `{"target": "any", "args": {"b": 1.0, "a": "é<&>", "big": 12345678901234567890}}`},
		} {
			box.Ask(ctx, "POST", asked[0], key, []byte(asked[1]))
		}
	}
	box.Output(map[string]any{})
	return 0
}

// giveSessionID makes a session, and gives it the id that its turns are asked for with.
func giveSessionID(h *servicetest.Harness) {
	h.Helper()
	made := sessionOf(h, "says", nil)
	h.Stop()
	db := openDatabase(h, h.Settings.Home)
	exec(h, db, "UPDATE sessions SET id = ? WHERE id = ?", keySession, made)
	if err := db.Close(); err != nil {
		h.Fatal(err)
	}
	h.Start()
}

// runs are those to which clients say something, or which they have run again.
type runs struct{ heard, flow, asks, question string }

// sendAll sends all that has a key, and returns the ids of the runs that it makes.
func (r runs) sendAll(h *servicetest.Harness) iter.Seq2[string, string] {
	h.Helper()
	return func(yield func(string, string) bool) {
		all := submissions(h)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			sub := all[key]
			sub.Key = key
			id := h.Send(sub)
			h.Await(id)
			yield(key, id)
		}
		yield("resent", h.Send(spool.Submission{Unit: "any", Resend: "a digest", Context: "thread"}))
		yield("again", r.rerun(h, "again", api.Rerun{}))
		yield("from", r.rerun(h, "from", api.Rerun{From: "each", Set: []byte(`{"a": 1.0}`)}))
		r.tell(h)
	}
}

func (r runs) rerun(h *servicetest.Harness, key string, from api.Rerun) string {
	h.Helper()
	record, _, err := h.Service.Rerun(access.WithServer(context.Background()), r.flow, key, from)
	if err != nil {
		h.Fatal(err)
	}
	return h.Await(record.ID).ID
}

// tell says something to runs. Said again, it changes nothing.
func (r runs) tell(h *servicetest.Harness) {
	h.Helper()
	ctx := access.WithServer(context.Background())
	told, _ := orchestrator.FeatureOf[*messages.Feature](h.Service)
	_, err := told.SayOnce(ctx, r.heard, "said", everything, nil)
	once, refused := keys.Resent("a digest", r.heard)
	_, resent := told.Say(ctx, r.heard, once, everything, nil)
	err = errors.Join(err, refused, resent,
		h.Service.Resends.Answer(ctx, r.asks, "a digest", r.question, api.Answer{Action: "approve"}))
	if err != nil {
		h.Fatal(err)
	}
	said, err := told.List(ctx, r.heard, 0, 0)
	if err != nil || len(said.Messages) != 2 {
		h.Fatal(said, err)
	}
}
