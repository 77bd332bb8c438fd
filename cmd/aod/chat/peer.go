package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
)

// peer is whom the user talks with: a wrapped agent in a session, or a unit that is given what was said so far with
// each message. The runs of such a conversation have its name for a context, and are all that is kept of it.
type peer struct {
	unit    string
	session string // "": there is none
	context string // the name of the conversation, where there is no session

	takesHistory bool
	history      []said // the oldest first
}

// said is what one of both has said, in the form that a contract's history has.
type said struct {
	Role    string `json:"role"` // user or assistant
	Content string `json:"content"`
}

// Bounds of what is given again: the newest of it.
const (
	maxSaid      = 200
	maxSaidBytes = 256 << 10
)

// begin returns the peer of a new conversation with a unit. An Input fault says what its contract lacks for that.
func begin(unit api.Unit) (*peer, error) {
	var contract struct {
		Properties map[string]any
		Required   []string
	}
	_ = json.Unmarshal(unit.InputSchema, &contract) // nothing is known of what isn't one
	_, hasMessage := contract.Properties["message"]
	_, hasHistory := contract.Properties["history"]
	needsMore := slices.ContainsFunc(contract.Required, func(name string) bool {
		return name != "message" && name != "history"
	})
	if !hasMessage || needsMore {
		return nil, fault.New(fault.Input, "%s can't be talked with: its input isn't a message", unit.Name).
			WithHint("`aod run %s` runs it once; a unit that is talked with has an input of message and, for what was "+
				"said before, history", unit.Name)
	}
	name := "chat-" + strings.ToLower(rand.Text()[:16])
	return &peer{unit: unit.Name, context: name, takesHistory: hasHistory}, nil
}

// takeUp returns the peer of a conversation by its name, with what was said in it; nil: there is none.
func takeUp(ctx context.Context, server *client.Client, name string) (*peer, error) {
	if api.CheckContext(name) != nil {
		return nil, nil
	}
	var runs []api.Summary
	for run, err := range server.Runs.List(ctx, api.Filter{Context: name}) {
		if err != nil {
			return nil, err
		}
		if runs = append(runs, run); len(runs) > maxSaid {
			break
		}
	}
	if len(runs) == 0 {
		return nil, nil
	}
	unit, err := server.Units.Get(ctx, runs[0].Unit)
	if err != nil {
		return nil, err
	}
	p, err := begin(unit)
	if err != nil {
		return nil, err
	}
	p.context = name
	for _, run := range slices.Backward(runs) {
		if !p.takesHistory || run.Unit != p.unit || run.Outcome != api.Success {
			continue
		}
		record, err := server.Runs.Get(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		p.heard(messageIn(record), record)
	}
	return p, nil
}

// messageIn is the message of a turn; "" where that isn't told.
func messageIn(record api.Record) string {
	var input struct{ Message string }
	if !record.InputMasked {
		_ = json.Unmarshal(record.Input, &input) // then it had none
	}
	return input.Message
}

// filter finds the turns.
func (p *peer) filter() api.Filter {
	if p.session != "" {
		return api.Filter{Session: p.session}
	}
	return api.Filter{Context: p.context, Unit: p.unit}
}

// name is what the conversation goes on by.
func (p *peer) name() string {
	if p.session != "" {
		return "session " + p.session
	}
	return "conversation " + p.context
}

// submission is the next turn.
func (p *peer) submission(message string) client.Submission {
	if p.session != "" {
		return client.Submission{Session: p.session, Input: Input(message)}
	}
	input := map[string]any{"message": message}
	if p.takesHistory {
		input["history"] = append([]said{}, p.history...) // a list, also of nothing
	}
	raw, _ := json.Marshal(input) // texts can't fail
	return client.Submission{Unit: p.unit, Context: p.context, Input: raw}
}

// heard keeps what was said in a turn that succeeded, if that is given again.
func (p *peer) heard(message string, record api.Record) {
	if !p.takesHistory || record.Outcome != api.Success || message == "" {
		return
	}
	text, is := runcmd.TextOf(record)
	if !is {
		text = string(record.Output)
	}
	p.history = append(p.history, said{"user", message}, said{"assistant", text})
	size := 0
	for _, s := range p.history {
		size += len(s.Content)
	}
	for len(p.history) > 2 && (len(p.history) > maxSaid || size > maxSaidBytes) {
		size -= len(p.history[0].Content) + len(p.history[1].Content)
		p.history = p.history[2:]
	}
}
