package translate

// responsesReader reads events of Responses.
type responsesReader struct {
	said bool // a word of the part or the call came in pieces
	call int  // output_index of the call that was begun last; -1: none is open
}

func (r *responsesReader) read(o *fields, a *answer) []delta {
	response := o.take("response").object()
	if a.id == "" {
		a.head = readHead(response, "created_at")
	}
	switch kind := o.take("type"); kind.text() {
	case "response.completed", "response.incomplete":
		a.stop = readResponseStop(response)
	case "response.output_item.added":
		return r.added(o.take("item").object(), o.take("output_index").integer())
	case "response.content_part.added":
		r.said = false
	case "response.output_text.delta", "response.refusal.delta":
		r.said = true
		return pieces(kind.text() == "response.refusal.delta", o.take("delta"))
	case "response.output_text.done", "response.refusal.done":
		if name := kind.text(); !r.said && name == "response.refusal.done" {
			return pieces(true, o.take("refusal"))
		} else if !r.said {
			return pieces(false, o.take("text"))
		}
	case "response.function_call_arguments.delta", "response.function_call_arguments.done":
		return r.arguments(o)
	}
	return nil
}

func pieces(refuses bool, v value) []delta {
	if refuses {
		return []delta{{kind: refusalPart, at: v, text: v.text()}}
	}
	return []delta{{at: v, text: v.text()}}
}

func (r *responsesReader) added(item *fields, index int) []delta {
	r.said = false
	switch kind := item.take("type"); kind.text() {
	case "message", "reasoning":
	case "function_call":
		p := readFunctionCall(item)
		r.call, r.said = index, p.text != ""
		return []delta{{kind: callPart, at: item.value, id: p.id, name: p.name, text: p.text}}
	default:
		kind.refuse(noWord)
	}
	return nil
}

func (r *responsesReader) arguments(o *fields) []delta {
	if o.take("output_index").integer() != r.call {
		o.refuse("the calls of tools come mixed")
	}
	v := o.take("delta")
	if !v.there() && !r.said {
		v = o.take("arguments") // whole
	}
	r.said = true
	return []delta{{kind: callPart, at: v, text: v.text()}}
}

// responsesWriter writes events of Responses.
type responsesWriter struct {
	stream  *Stream
	number  int   // of the next event
	items   array // that are whole
	message object
}

func (w *responsesWriter) event(name string, o object) {
	o["sequence_number"] = w.number
	w.number++
	w.stream.named(name, o)
}

func (w *responsesWriter) begin() {
	s := w.stream
	began := s.answer
	began.stop, began.usage = "", nil
	w.event("response.created", object{"response": began.response(array{})})
	w.event("response.in_progress", object{"response": began.response(array{})})
}

// at says where in the answer an event belongs.
func (w *responsesWriter) at(o object) object {
	o["output_index"] = len(w.items)
	if w.message != nil {
		o["item_id"], o["content_index"] = w.message["id"], len(w.message["content"].(array))
		return o
	}
	o["item_id"] = w.stream.itemID("fc", len(w.items))
	return o
}

func (w *responsesWriter) open(p part) {
	if p.kind == callPart {
		w.shutMessage()
		item := w.stream.writeOutput(len(w.items), p)
		item["status"] = "in_progress"
		w.event("response.output_item.added", object{"output_index": len(w.items), "item": item})
		return
	}
	if w.message == nil {
		w.message = w.stream.writeOutput(len(w.items), p)
		w.message["status"] = "in_progress"
		w.event("response.output_item.added", object{"output_index": len(w.items), "item": w.message})
	}
	w.event("response.content_part.added", w.at(object{"part": p.said()}))
}

func (w *responsesWriter) add(text string) {
	o := w.at(object{"delta": text})
	switch w.stream.now.kind {
	case callPart:
		w.event("response.function_call_arguments.delta", o)
	case refusalPart:
		w.event("response.refusal.delta", o)
	default:
		o["logprobs"] = array{}
		w.event("response.output_text.delta", o)
	}
}

func (w *responsesWriter) close(p part) {
	switch p.kind {
	case callPart:
		w.event("response.function_call_arguments.done", w.at(object{"arguments": p.text, "name": p.name}))
		w.done(w.stream.writeOutput(len(w.items), p))
		return
	case refusalPart:
		w.event("response.refusal.done", w.at(object{"refusal": p.text}))
	default:
		w.event("response.output_text.done", w.at(object{"text": p.text, "logprobs": array{}}))
	}
	w.event("response.content_part.done", w.at(object{"part": p.said()}))
	w.message["content"] = append(w.message["content"].(array), p.said())
}

func (w *responsesWriter) shutMessage() {
	if w.message != nil {
		w.message["status"] = "completed"
		w.done(w.message)
		w.message = nil
	}
}

func (w *responsesWriter) done(item object) {
	w.event("response.output_item.done", object{"output_index": len(w.items), "item": item})
	w.items = append(w.items, item)
}

func (w *responsesWriter) end(bool) {
	name, whole := "response.completed", w.whole()
	if whole["status"] == "incomplete" {
		name = "response.incomplete"
	}
	w.event(name, object{"response": whole})
}

func (w *responsesWriter) whole() object {
	w.shutMessage()
	return w.stream.response(append(array{}, w.items...))
}
