package chat

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/conversation"
)

// peer is whom the user talks with: a wrapped agent in a session, or a unit that is given what was said so far with
// each message.
type peer struct {
	unit    string
	session string // "": there is none, but
	talk    *conversation.Conversation
}

// begin returns the peer of a conversation with a unit: a new one where it has no name.
func begin(unit api.Unit, name string) (*peer, error) {
	talk, err := conversation.With(unit.Name, unit.InputSchema, name)
	if err != nil {
		return nil, err
	}
	return &peer{unit: unit.Name, talk: talk}, nil
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
		if runs = append(runs, run); len(runs) == 2*conversation.MaxTurns { // some of which failed
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
	p, err := begin(unit, name)
	if err != nil {
		return nil, err
	}
	return p, p.talk.Resume(runs, func(id string) (api.Record, error) { return server.Runs.Get(ctx, id) })
}

// filter finds the turns.
func (p *peer) filter() api.Filter {
	if p.session != "" {
		return api.Filter{Session: p.session}
	}
	return api.Filter{Context: p.talk.Name, Unit: p.unit}
}

// name is what the conversation goes on by.
func (p *peer) name() string {
	if p.session != "" {
		return "session " + p.session
	}
	return "conversation " + p.talk.Name
}

// submission is the next turn.
func (p *peer) submission(message string) client.Submission {
	if p.session != "" {
		return client.Submission{Session: p.session, Input: Input(message)}
	}
	return client.Submission{Unit: p.unit, Context: p.talk.Name, Input: p.talk.Input(message)}
}

// heard keeps what was said in a turn, if that is given again.
func (p *peer) heard(message string, record api.Record) {
	if p.session == "" {
		p.talk.Hear(message, record)
	}
}
