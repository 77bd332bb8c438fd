package a2apeer

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Message is what an agent is sent.
type Message struct {
	ID      string `json:"id"`
	Task    string `json:"task,omitempty"`    // to which it belongs; "": it begins one
	Context string `json:"context,omitempty"` // of that task
	Parts   []Part `json:"parts"`
}

// Part is one piece of a message or of an artifact. One of Text, Data, Raw and URL is set.
type Part struct {
	Text  *string         `json:"text,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	Raw   []byte          `json:"raw,omitempty"` // a file
	URL   string          `json:"url,omitempty"` // where a file is
	Name  string          `json:"name,omitempty"`
	Media string          `json:"media,omitempty"` // "": not said
	Field string          `json:"field,omitempty"` // of a file: the field that it belongs to, "" if that isn't said
}

// TextPart is a part with a text.
func TextPart(text string) Part { return Part{Text: &text} }

// DataPart is a part with a JSON value.
func DataPart(value json.RawMessage) Part { return Part{Data: value} }

// FilePart is a part with a file, which belongs to a field of the input.
func FilePart(name string, content []byte, field string) Part {
	return Part{Raw: content, Name: name, Media: httpwire.TypeOfFile(name), Field: field}
}

// textFields are the members of an input whose text is what an agent is told. The first that there is counts.
var textFields = []string{"message", "prompt", "query", "text"}

// PartsOf returns the parts for an input, which it takes apart: the text of its member message, prompt, query or text,
// and a JSON object of the others, if there are any. With always there is an object where there would be no part.
func PartsOf(values map[string]any, always bool) (parts []Part, err error) {
	for _, name := range textFields {
		if text, ok := values[name].(string); ok {
			parts = append(parts, TextPart(text))
			delete(values, name)
			break
		}
	}
	if len(values) == 0 && (len(parts) > 0 || !always) {
		return parts, nil
	}
	raw, err := strictjson.Encode(values)
	return append(parts, DataPart(raw)), err
}

// IsFile reports whether the part is a file, or says where one is.
func (p *Part) IsFile() bool { return p.Raw != nil || p.URL != "" }

// Unnamed is a name for the file of a part that names none, the nth of its task.
func (p *Part) Unnamed(n int) string { return fmt.Sprintf("file-%d%s", n, httpwire.Extension(p.Media)) }

// fieldKey names the field of a file in a part's metadata.
const fieldKey = "field"

// size is how many bytes a part holds.
func (p *Part) size() int {
	n := len(p.Data) + len(p.Raw) + len(p.URL) + len(p.Name) + len(p.Media) + len(p.Field)
	if p.Text != nil {
		n += len(*p.Text)
	}
	return n
}

// request is the request to send a message, with an answer at once and without what was said before.
func (m Message) request(tenant string) *a2a.SendMessageRequest {
	none := 0
	message := &a2a.Message{ID: m.ID, TaskID: a2a.TaskID(m.Task), ContextID: m.Context, Role: a2a.MessageRoleUser}
	for _, p := range m.Parts {
		message.Parts = append(message.Parts, p.wire())
	}
	return &a2a.SendMessageRequest{
		Tenant: tenant, Message: message, Config: &a2a.SendMessageConfig{ReturnImmediately: true, HistoryLength: &none},
	}
}

// valueOf is a JSON value as the SDK takes it: version 0.3 has objects alone, and it looks for them. Numbers keep their
// text.
func valueOf(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	return v
}

// wire is a part as the SDK writes it.
func (p *Part) wire() *a2a.Part {
	w := &a2a.Part{Filename: p.Name, MediaType: p.Media}
	switch {
	case p.Text != nil:
		w.Content = a2a.Text(*p.Text)
	case p.Data != nil:
		w.Content = a2a.Data{Value: valueOf(p.Data)}
	case p.URL != "":
		w.Content = a2a.URL(p.URL)
	default:
		w.Content = a2a.Raw(p.Raw)
	}
	if p.Field != "" {
		w.Metadata = map[string]any{fieldKey: p.Field}
	}
	return w
}
