package translate

import (
	"encoding/json"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

type partKind uint8

const (
	textPart partKind = iota
	refusalPart
	imagePart
	callPart
	resultPart
)

// part is a part of a turn or of an answer.
type part struct {
	kind partKind
	at   value
	text string // of a text or a refusal; the arguments of a call

	id, name string // of a call; of the call that a result is for

	url    string // of an image: an address, or data:
	detail value

	parts  []part // of a result
	failed value  // of a result: that it is an error
}

// kinds are the types of parts in each dialect.
var kinds = map[catalog.Dialect][]string{
	catalog.Chat:      {"text", "refusal", "image_url"},
	catalog.Responses: {"input_text", "output_text", "refusal", "input_image"},
	catalog.Messages:  {"text", "image", "tool_use", "tool_result"},
}

// readParts reads a content: a text, or a list of parts.
func readParts(d catalog.Dialect, v value) (parts []part) {
	if v.isText() {
		if v.text() == "" {
			return nil
		}
		return []part{{at: v, text: v.text()}}
	}
	for _, v := range v.list() {
		o := v.object()
		kind := o.take("type")
		switch {
		case oneOf(kind.text(), kinds[d]...):
			parts = append(parts, readPart(kind.text(), v, o))
			o.done()
		case !v.bad.answers || !oneOf(kind.text(), "thinking", "redacted_thinking", "reasoning_text"):
			kind.refuse(notThis)
		}
	}
	return parts
}

func readPart(kind string, v value, o *fields) part {
	p := part{at: v}
	switch kind {
	case "refusal":
		p.kind, p.text = refusalPart, o.take("refusal").text()
	case "image_url":
		p.kind, p.url, p.detail = imagePart, o.take("image_url/url").text(), o.take("image_url/detail")
	case "input_image":
		p.kind, p.url, p.detail = imagePart, o.take("image_url").text(), o.take("detail")
	case "image":
		p.kind, p.url = imagePart, readSource(o)
	case "tool_use":
		input := o.take("input")
		input.is('{', "an object")
		p.kind, p.id, p.name, p.text = callPart, o.take("id").text(), o.take("name").text(), string(input.raw)
	case "tool_result":
		p.kind, p.id, p.failed = resultPart, o.take("tool_use_id").text(), o.take("is_error")
		p.parts = readParts(catalog.Messages, o.take("content"))
	default:
		p.text = o.take("text").text()
		for _, name := range []string{"annotations", "citations", "logprobs"} {
			o.only(name, "[]")
		}
	}
	return p
}

// readSource returns the address of an image of Messages, which may be a data: one.
func readSource(o *fields) string {
	switch kind := o.take("source/type"); kind.text() {
	case "base64":
		return "data:" + o.take("source/media_type").text() + ";base64," + o.take("source/data").text()
	case "url":
		return o.take("source/url").text()
	default:
		kind.refuse(notThis)
		return ""
	}
}

// writeParts writes one text as a text, and all else as a list.
func writeParts(parts []part, write func(part) object) any {
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) == 1 && parts[0].kind == textPart:
		return parts[0].text
	}
	return each(parts, func(p part) any { return write(p) })
}

func (p part) chat() object {
	switch p.kind {
	case imagePart:
		o := object{"type": "image_url"}
		set(o, "image_url/url", p.url)
		put(o, "image_url/detail", p.detail)
		return o
	case refusalPart:
		return object{"type": "refusal", "refusal": p.text}
	}
	return object{"type": "text", "text": p.text}
}

// responses returns how a part is written that a role says.
func (p part) responses(role string) object {
	switch {
	case p.kind == imagePart:
		o := object{"type": "input_image", "image_url": p.url}
		put(o, "detail", p.detail)
		return o
	case p.kind == refusalPart:
		return object{"type": "refusal", "refusal": p.text}
	case role == assistant:
		return object{"type": "output_text", "text": p.text}
	}
	return object{"type": "input_text", "text": p.text}
}

func (p part) messages() object {
	switch p.kind {
	case imagePart:
		return object{"type": "image", "source": p.source()}
	case callPart:
		return object{"type": "tool_use", "id": p.id, "name": p.name, "input": json.RawMessage(p.arguments())}
	case resultPart:
		o := object{"type": "tool_result", "tool_use_id": p.id, "content": writeParts(p.parts, part.messages)}
		put(o, "is_error", p.failed)
		return o
	case refusalPart:
		p.at.refuse(noWord)
	}
	return object{"type": "text", "text": p.text}
}

// source takes the content of an image out of its address.
func (p part) source() object {
	if p.detail.there() && p.detail.text() != "auto" {
		p.detail.refuse(notThis)
	}
	rest, isData := strings.CutPrefix(p.url, "data:")
	if !isData {
		return object{"type": "url", "url": p.url}
	}
	media, data, ok := strings.Cut(rest, ";base64,")
	if !ok || strings.ContainsAny(media, ";,") {
		p.at.refuse("its data: address isn't a media type and base64")
	}
	return object{"type": "base64", "media_type": media, "data": data}
}

// arguments are those of a call, which are an object in Messages.
func (p part) arguments() []byte {
	text := []byte(p.text)
	if p.text == "" {
		return []byte("{}")
	}
	if strictjson.Check(text, strictjson.Rules{}) != nil || strictjson.NewCursor(text).Peek() != '{' {
		p.at.refuse("the arguments of a call have to be a JSON object")
		return []byte("{}")
	}
	return text
}

// result is the content of a result at OpenAI. It has no mark for a call that failed: its content says so.
func (p part) result(write func(part) object) any {
	if !p.failed.yes() {
		return writeParts(p.parts, write)
	}
	told := part{at: p.at, text: "Error: "}
	if len(p.parts) > 0 && p.parts[0].kind == textPart {
		told.text += p.parts[0].text
		p.parts = p.parts[1:]
	}
	return writeParts(append([]part{told}, p.parts...), write)
}
