package translate

import "github.com/agent-on-demand/aod/handoff/gateway/catalog"

// chatReader reads chunks of Chat Completions.
type chatReader struct {
	index int // of the call that was begun last
	id    string
	calls int
}

func (r *chatReader) read(o *fields, a *answer) (all []delta) {
	if a.id == "" {
		a.head = readHead(o, "created")
	}
	for _, v := range o.take("choices").list() {
		choice := v.object()
		if choice.take("index").integer() > 0 {
			v.refuse("it has one answer")
		}
		for _, p := range readParts(catalog.Chat, choice.take("delta/content")) {
			all = append(all, delta{at: p.at, text: p.text})
		}
		if v := choice.take("delta/refusal"); v.there() {
			all = append(all, delta{kind: refusalPart, at: v, text: v.text()})
		}
		for _, name := range []string{"delta/audio", "delta/function_call"} {
			choice.take(name).unsaid()
		}
		for _, v := range choice.take("delta/tool_calls").list() {
			all = append(all, r.readCall(v))
		}
		if v := choice.take("finish_reason"); v.there() {
			a.stop = readStop(v, chatStops)
		}
	}
	return all
}

// readCall reads a part of a call. Some servers number none of them, and others repeat the id in each part.
func (r *chatReader) readCall(v value) delta {
	o := v.object()
	index, id := o.take("index").integer(), o.take("id").text()
	name := o.take("function/name").text()
	d := delta{kind: callPart, at: v, text: o.take("function/arguments").text()}
	if r.calls == 0 || index > r.index || id != "" && id != r.id {
		r.index, r.id, r.calls = index, id, r.calls+1
		d.id, d.name = id, name
	} else if index >= 0 && index < r.index {
		v.refuse("the calls of tools come mixed")
	}
	return d
}

// chatWriter writes chunks of Chat Completions.
type chatWriter struct {
	stream *Stream
	calls  int
}

func (w *chatWriter) chunk(delta object, stop any) {
	o := w.stream.chatHead("chat.completion.chunk")
	o["choices"] = array{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": stop}}
	if w.stream.t.usage {
		o["usage"] = nil
	}
	w.stream.data(o)
}

func (w *chatWriter) begin() { w.chunk(object{"role": assistant, "content": ""}, nil) }

func (w *chatWriter) open(p part) {
	if p.kind == callPart {
		call := p.chatCall()
		call["index"] = w.calls
		w.calls++
		w.chunk(object{"tool_calls": array{call}}, nil)
	}
}

func (w *chatWriter) add(text string) {
	switch w.stream.now.kind {
	case callPart:
		call := object{"index": w.calls - 1, "function": object{"arguments": text}}
		w.chunk(object{"tool_calls": array{call}}, nil)
	case refusalPart:
		w.chunk(object{"refusal": text}, nil)
	default:
		w.chunk(object{"content": text}, nil)
	}
}

func (*chatWriter) close(part) {}

func (w *chatWriter) end(bool) {
	s := w.stream
	w.chunk(object{}, chatStop(s.stop))
	if s.t.usage && s.usage != nil {
		o := s.chatHead("chat.completion.chunk")
		o["choices"], o["usage"] = array{}, s.usage.chat()
		s.data(o)
	}
	s.out.WriteString("data: [DONE]\n\n")
}
