// Package conversation has a unit talked with that keeps nothing: each turn is a run of it, whose input has the message
// and what was said before. The runs have the conversation's name for their context, and are all that is kept of it.
//
// Its Go API may change with every release: see docs/stability.md.
package conversation

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Bounds of what is given again: the newest of it.
const (
	maxSaid      = 200
	maxSaidBytes = 256 << 10
)

// MaxTurns is how many turns are given again at most.
const MaxTurns = maxSaid / 2

// Said is what one of both has said, in the form that a contract's history has.
type Said struct {
	Role    string `json:"role"` // user or assistant
	Content string `json:"content"`
}

// Conversation is one with a unit. It isn't for several at once.
type Conversation struct {
	Unit    string
	Name    string // the context of its runs
	History []Said // the oldest first; none where the unit doesn't take it

	takesHistory bool
}

// Takes tells whether an input, a JSON Schema, is a message, and whether what was said before belongs to it.
func Takes(input json.RawMessage) (message, history bool) {
	var contract struct {
		Properties map[string]any
		Required   []string
	}
	_ = json.Unmarshal(input, &contract) // nothing is known of what isn't one
	_, message = contract.Properties["message"]
	_, history = contract.Properties["history"]
	needsMore := slices.ContainsFunc(contract.Required, func(name string) bool {
		return name != "message" && name != "history"
	})
	return message && !needsMore, history
}

// NewName is the name of another conversation.
func NewName() string { return "chat-" + strings.ToLower(rand.Text()[:16]) }

// With is a conversation of that name with a unit, in which nothing was said; without a name it is a new one. An Input
// fault says what the unit's input, a JSON Schema, lacks for that.
func With(unit string, input json.RawMessage, name string) (*Conversation, error) {
	message, history := Takes(input)
	if !message {
		return nil, fault.New(fault.Input, "%s can't be talked with: its input isn't a message", unit).
			WithHint("`aod run %s` runs it once; a unit that is talked with has an input of message and, for what was "+
				"said before, history", unit)
	}
	if name == "" {
		name = NewName()
	}
	return &Conversation{Unit: unit, Name: name, takesHistory: history}, nil
}

// Resume takes up what was said in runs, the newest first, of which get returns the records.
func (c *Conversation) Resume(runs []api.Summary, get func(id string) (api.Record, error)) error {
	for _, run := range slices.Backward(runs) {
		if !c.takesHistory || run.Unit != c.Unit || run.Outcome != api.Success {
			continue
		}
		record, err := get(run.ID)
		if err != nil {
			return err
		}
		c.Hear(MessageIn(record), record)
	}
	return nil
}

// Input is that of the next turn.
func (c *Conversation) Input(message string) json.RawMessage {
	input := map[string]any{"message": message}
	if c.takesHistory {
		input["history"] = append([]Said{}, c.History...) // a list, also of nothing
	}
	raw, _ := json.Marshal(input) // texts can't fail
	return raw
}

// Hear keeps what was said in a turn that succeeded, if that is given again.
func (c *Conversation) Hear(message string, record api.Record) {
	if !c.takesHistory || record.Outcome != api.Success || message == "" {
		return
	}
	text, is := record.Text()
	if !is {
		text = string(record.Output)
	}
	c.History = append(c.History, Said{"user", message}, Said{"assistant", text})
	size := 0
	for _, s := range c.History {
		size += len(s.Content)
	}
	for len(c.History) > 2 && (len(c.History) > maxSaid || size > maxSaidBytes) {
		size -= len(c.History[0].Content) + len(c.History[1].Content)
		c.History = c.History[2:]
	}
}

// MessageIn is the message of a turn; "" where that isn't told.
func MessageIn(record api.Record) string {
	var input struct{ Message string }
	if !record.InputMasked {
		_ = json.Unmarshal(record.Input, &input) // then it had none
	}
	return input.Message
}
