package agent

import (
	"github.com/agent-on-demand/aod/api/fault"
)

// plainRPC speaks JSON-RPC 2.0: a prompt is a request, its answer is the turn's end.
type plainRPC struct {
	rpc    RPC
	result Result
}

func (plainRPC) first(State) step { return stepPrompt }

func (p plainRPC) request(_ step, s State, prompt string) []byte {
	params := p.rpc.Params
	if params == nil {
		params = map[string]any{"message": "{message}"}
	}
	return rpcRequest(s.Pending, p.rpc.Method, fillParams(params, Values{Message: prompt, Session: s.Session}))
}

// fillParams puts values into the texts of a template.
func fillParams(template any, v Values) any {
	switch t := template.(type) {
	case string:
		return fill(t, v.valueOf)
	case []any:
		filled := make([]any, len(t))
		for i := range t {
			filled[i] = fillParams(t[i], v)
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(t))
		for name := range t {
			filled[name] = fillParams(t[name], v)
		}
		return filled
	}
	return template
}

// stop is nil: JSON-RPC has no word for it.
func (plainRPC) stop(State) []byte { return nil }

func (plainRPC) ends(fields map[string]string, s State) bool { return rpcEnds(fields, s) }

func (p plainRPC) hear(document any, s State, _ *speech) meaning {
	m, ok := readRPC(document)
	switch {
	case !ok:
		return strange
	case m.answers(s.Pending):
		return p.answered(m)
	}
	return rpcUnasked(m)
}

// answered is the end of the turn.
func (p plainRPC) answered(m rpcMessage) meaning {
	if err := m.err(); err != nil {
		return ended(err)
	}
	found := finds{of: p.result}
	found.note(m.result)
	output, err := found.output(MaxMessage)
	if err != nil {
		return ended(programError("%v", err))
	}
	end := &ending{reply: Reply{Text: output.Text, Usage: output.Usage, CostUSD: output.CostUSD}}
	if output.Failed {
		end.err = programError("the program's answer says that it failed: %s", fault.Quote(output.Reason))
	}
	return meaning{end: end, session: output.Session}
}
