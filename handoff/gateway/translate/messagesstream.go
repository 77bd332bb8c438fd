package translate

import "github.com/agent-on-demand/aod/handoff/gateway/catalog"

// messagesReader reads events of Messages.
type messagesReader struct {
	index int // of the block that was begun last
}

func (r *messagesReader) read(o *fields, a *answer) []delta {
	switch o.take("type").text() {
	case "message_start":
		a.head = readHead(o.take("message").object(), "created")
	case "content_block_start":
		r.index = o.take("index").integer()
		return r.start(o.take("content_block"))
	case "content_block_delta":
		if i := o.take("index").integer(); i >= 0 && i != r.index {
			o.refuse("the blocks come mixed")
		}
		return r.add(o.take("delta").object())
	case "message_delta":
		said := o.take("delta").object()
		if v := said.take("stop_reason"); v.there() {
			a.stop = readStop(v, messagesStops)
		}
		if v := said.take("stop_sequence"); v.there() {
			a.sequence = v.text()
		}
	}
	return nil
}

// start reads what a block begins with. The input of a call comes in pieces; some servers have it whole here.
func (r *messagesReader) start(v value) (all []delta) {
	one := value{v.bad, v.at, append(append([]byte("["), v.raw...), ']')}
	for _, p := range readParts(catalog.Messages, one) {
		if p.text == "{}" {
			p.text = ""
		}
		all = append(all, delta{kind: p.kind, at: v, id: p.id, name: p.name, text: p.text})
	}
	return all
}

func (r *messagesReader) add(o *fields) []delta {
	switch kind := o.take("type"); kind.text() {
	case "text_delta":
		v := o.take("text")
		return []delta{{at: v, text: v.text()}}
	case "input_json_delta":
		v := o.take("partial_json")
		return []delta{{kind: callPart, at: v, text: v.text()}}
	case "thinking_delta", "signature_delta", "citations_delta":
	default:
		kind.refuse(noWord)
	}
	return nil
}

// messagesWriter writes events of Messages.
type messagesWriter struct {
	stream *Stream
	index  int // of the block that is open
}

func (w *messagesWriter) begin() {
	w.stream.named("message_start", object{"message": w.stream.message()})
}

func (w *messagesWriter) open(p part) {
	block := object{"type": "text", "text": ""}
	if p.kind == callPart {
		block = p.messages() // without arguments yet
	}
	w.stream.named("content_block_start", object{"index": w.index, "content_block": block})
}

func (w *messagesWriter) add(text string) {
	said := object{"type": "text_delta", "text": text}
	if w.stream.now.kind == callPart {
		said = object{"type": "input_json_delta", "partial_json": text}
	}
	w.stream.named("content_block_delta", object{"index": w.index, "delta": said})
}

func (w *messagesWriter) close(part) {
	w.stream.named("content_block_stop", object{"index": w.index})
	w.index++
}

func (w *messagesWriter) end(refuses bool) {
	s := w.stream
	said := object{"stop_reason": s.messagesStop(refuses), "stop_sequence": nil}
	putText(said, "stop_sequence", s.sequence)
	s.named("message_delta", object{"delta": said, "usage": s.usage.messages()})
	s.named("message_stop", object{})
}
