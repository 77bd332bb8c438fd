package run

import (
	"encoding/json"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/mask"
)

// maskedTold is what the program of a session tells in a turn. Its text comes in pieces, and a
// secret may lie across them: the last words of a text are held back until the next one, or
// until something else is told.
type maskedTold struct {
	kind  string // of the text that goes on; "": none does
	texts map[string]*mask.Pieces
}

// masked returns what may be stored and shown once some events are told.
func (m *maskedTold) masked(r *Run, told []api.AgentEvent) (shown []api.AgentEvent) {
	for _, e := range told {
		e.ID = r.Masked(e.ID)
		if e.Kind != m.kind {
			shown = append(shown, m.rest(r)...)
		}
		if !comesInPieces(e.Kind) {
			e.Text = r.Masked(e.Text)
			if e.Arguments != "" {
				e.Arguments = string(r.maskedJSON(r.ofTexts(), json.RawMessage(e.Arguments)))
			}
			shown = append(shown, e)
			continue
		}
		m.kind = e.Kind
		if piece := m.text(r).Next(e.Text); piece != "" {
			e.Text = piece
			shown = append(shown, e)
		}
	}
	return shown
}

func comesInPieces(kind string) bool { return kind == api.AgentText || kind == api.AgentThought }

// text is that of the kind that goes on.
func (m *maskedTold) text(r *Run) *mask.Pieces {
	if m.texts == nil {
		m.texts = map[string]*mask.Pieces{}
	}
	if m.texts[m.kind] == nil {
		m.texts[m.kind] = r.Pieces()
	}
	return m.texts[m.kind]
}

// rest returns what was held back of the text that goes on, which doesn't any more.
func (m *maskedTold) rest(r *Run) (shown []api.AgentEvent) {
	if m.kind == "" {
		return nil
	}
	if rest := m.text(r).Pause(); rest != "" {
		shown = []api.AgentEvent{{Kind: m.kind, Text: rest}}
	}
	m.kind = ""
	return shown
}

// maskedTold returns what may be stored and shown once some events are told.
func (r *Run) maskedTold(told []api.AgentEvent) []api.AgentEvent {
	if r.ofTexts() == nil {
		return told
	}
	return r.told.masked(r, told)
}

// ToldAgain takes events that an earlier process has kept: what comes next may go on with them.
func (r *Run) ToldAgain(told ...api.AgentEvent) { r.maskedTold(told) }
