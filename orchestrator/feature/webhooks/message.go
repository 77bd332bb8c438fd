package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// body is what a request says.
type body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the event
	Data      any       `json:"data"`
}

// runData is what is told of the end of a run.
type runData struct {
	Run     string      `json:"run"`
	Unit    string      `json:"unit"`
	State   api.State   `json:"state"`
	Outcome api.Outcome `json:"outcome"`
	Owner   api.Owner   `json:"owner"`
	Path    string      `json:"path"` // of the server's API
}

// questionData is what is told of a question: not what is asked, which may have what a program has read.
type questionData struct {
	Question  string            `json:"question"`
	State     api.QuestionState `json:"state"`
	Kind      api.QuestionKind  `json:"kind,omitempty"`
	Approvers json.RawMessage   `json:"approvers,omitempty"` // who alone may answer it
	Until     *time.Time        `json:"until,omitempty"`
	Run       string            `json:"run"`
	Root      string            `json:"root"` // of the run's tree
	Unit      string            `json:"unit"`
	Owner     api.Owner         `json:"owner"`
	Path      string            `json:"path"`
}

// testData is what is told to try a webhook out.
type testData struct {
	Webhook string `json:"webhook"`
}

// compose is a pushes.Compose. The id is the event's, for each receiver and each try; the time is now.
func (f *Feature) compose(ctx context.Context, d pushes.Delivery) (pushes.Message, error) {
	data, err := f.dataOf(ctx, d)
	if err != nil {
		return pushes.Message{}, err
	}
	kind := store.HookedAs(store.Event{Type: string(d.Event.Type), Data: d.Event.Data})
	id := fmt.Sprintf("%s-%d", d.Run, d.Event.Seq)
	return f.message(d.Webhook, id, body{kind, d.At.UTC(), data})
}

// message signs what a webhook says.
func (f *Feature) message(webhook, id string, b body) (pushes.Message, error) {
	keys, err := f.keysFor(webhook)
	if err != nil {
		return pushes.Message{}, err
	}
	raw, err := json.Marshal(b)
	return pushes.Message{Body: raw, Kind: "application/json", Header: signed(keys, id, time.Now(), raw)}, err
}

func (f *Feature) dataOf(ctx context.Context, d pushes.Delivery) (any, error) {
	owner := api.Owner{Team: d.Of.Team, Identity: api.IdentityOf(d.Of.By)}
	told, err := d.Event.Decode()
	if err != nil {
		return nil, err
	}
	switch told := told.(type) {
	case api.EndEvent:
		return runData{d.Run, d.Of.Unit, told.State, told.Outcome, owner, "/v1/runs/" + d.Run}, nil
	case api.QuestionEvent:
		q, err := f.store.Questions.Get(ctx, told.ID)
		return questionData{
			Question: told.ID, State: told.State, Kind: api.QuestionKind(q.Kind),
			Approvers: json.RawMessage(q.Approvers), Until: api.TimeOrNil(q.Until),
			Run: d.Run, Root: d.Of.Root, Unit: d.Of.Unit, Owner: owner, Path: "/v1/questions/" + told.ID,
		}, err
	}
	return nil, fmt.Errorf("webhooks tell nothing of an event %s", d.Event.Type)
}
