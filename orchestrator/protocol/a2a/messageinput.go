package a2a

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	maxParts    = 1000
	maxMetadata = 64 << 10 // bytes of a message's metadata
	fieldKey    = "field"  // the metadata of a raw part that names its field
	typeText    = "text/plain"
	typeRaw     = "application/octet-stream"
)

// customaryTexts are the fields that take text where a unit's agent.yaml names none.
var customaryTexts = []string{"message", "prompt", "query", "text"}

// messageInput is the input that is made of a message.
type messageInput struct {
	schema  *contract.Schema // of the input; nil: there is no input
	field   string           // that takes text; "": there is none
	input   json.RawMessage
	values  map[string]any
	texts   []string
	files   []inputFile
	names   map[string]bool
	message api.MessageEvent
}

// inputFile is a file that a message brings. Its name is unique in its message.
type inputFile struct {
	name    string
	content []byte
}

func newMessageInput(schema *contract.Schema, m *sdk.Message) (*messageInput, error) {
	t := &messageInput{schema: schema, values: map[string]any{}, names: map[string]bool{}}
	t.message = api.MessageEvent{ID: m.ID, Role: api.RoleUser, At: time.Now().UTC()}
	if len(m.Metadata) == 0 {
		return t, nil
	}
	raw, err := strictjson.Encode(m.Metadata)
	if err == nil && len(raw) > maxMetadata {
		return nil, refuse(badParams, fmt.Sprintf("the message's metadata has more than %d bytes", maxMetadata))
	}
	t.message.Metadata = raw
	return t, err
}

// decodeInput makes the input of a unit of a message.
func decodeInput(agent Agent, m *sdk.Message) (*messageInput, error) {
	schema, err := inputOf(agent)
	if err != nil {
		return nil, err
	}
	t, err := newMessageInput(schema, m)
	if err != nil {
		return nil, err
	}
	t.field = textOf(agent, schema)
	if err := t.addAll(m.Parts); err != nil {
		return nil, err
	}
	if err := t.placeText(); err != nil {
		return nil, err
	}
	t.input, err = strictjson.Encode(t.values)
	return t, err
}

// inputOf is the contract of a unit's input.
func inputOf(agent Agent) (*contract.Schema, error) {
	parsed, findings := contract.Parse(agent.Schema)
	if parsed == nil {
		return nil, fmt.Errorf("the contract of a unit has %d problems", len(findings))
	}
	return parsed.Input, nil
}

// addAll takes the parts in their order.
func (t *messageInput) addAll(parts sdk.ContentParts) error {
	for _, part := range parts {
		if part == nil {
			return refuse(badParams, "a part of the message is missing")
		}
		if err := t.add(part); err != nil {
			return err
		}
	}
	return nil
}

func (t *messageInput) add(part *sdk.Part) error {
	switch content := part.Content.(type) {
	case sdk.Text:
		return t.text(string(content), part)
	case sdk.Data:
		return t.data(content.Value, part)
	case sdk.Raw:
		return t.raw(content, part)
	case sdk.URL:
		return refuse(badContent, "files are not fetched: send their content in the part's raw. "+t.takes())
	}
	return refuse(badParams, "a part has none of text, raw, data and url")
}

func (t *messageInput) text(text string, part *sdk.Part) error {
	if media := mediaType(part); media != "" && !strings.HasPrefix(media, "text/") {
		return refuse(badContent, "the media type of a text is text/…. "+t.takes())
	}
	t.texts = append(t.texts, text)
	t.message.Parts = append(t.message.Parts, api.Part{Text: text, MediaType: part.MediaType})
	return nil
}

func (t *messageInput) data(value any, part *sdk.Part) error {
	media := mediaType(part)
	if media != "" && media != httpwire.TypeJSON && !strings.HasSuffix(media, "+json") {
		return refuse(badContent, "the media type of data is application/json. "+t.takes())
	}
	raw, err := strictjson.Encode(value)
	if err != nil {
		return refuse(badParams, "the data of a part can't be read")
	}
	t.message.Parts = append(t.message.Parts, api.Part{Data: raw, MediaType: part.MediaType})
	if t.schema == nil {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return refuse(badContent, "the data of a part is an object with fields of the input. "+t.takes())
	}
	for key, one := range object {
		if _, there := t.values[key]; there {
			return refuse(badParams, "two parts of the message give the same field of the input")
		}
		t.values[key] = one
	}
	return nil
}

func (t *messageInput) raw(content []byte, part *sdk.Part) error {
	field, list, err := t.fieldFor(part)
	if err != nil {
		return err
	}
	name := t.named(part, field)
	t.files = append(t.files, inputFile{name, content})
	t.message.Parts = append(t.message.Parts, api.Part{
		File: &api.File{Name: name, SizeBytes: int64(len(content))}, MediaType: part.MediaType,
	})
	if !list {
		t.values[field] = name
		return nil
	}
	names, _ := t.values[field].([]any)
	t.values[field] = append(names, name)
	return nil
}

// fieldFor is the field of the input for a file: the one that its metadata names, else the next
// one that is free.
func (t *messageInput) fieldFor(part *sdk.Part) (field string, list bool, err error) {
	if t.schema == nil {
		return "", false, refuse(badContent, "a file comes too late. "+t.takes())
	}
	fields := t.schema.TakingFiles()
	if named, ok := part.Metadata[fieldKey].(string); ok {
		if !slices.Contains(fields, named) {
			return "", false, refuse(badContent, "the metadata `field` of a part names no field that takes a file. "+
				t.takes())
		}
		fields = []string{named}
	}
	for _, field := range fields {
		list := t.schema.IsList(field)
		if _, given := t.values[field]; !given || list {
			return field, list, nil
		}
	}
	return "", false, refuse(badContent, "the unit has no field for a file that the message brings. "+t.takes())
}

// named is a name for a file, which no other one of the message has.
func (t *messageInput) named(part *sdk.Part, field string) string {
	base := path.Base(part.Filename)
	if part.Filename == "" || api.CheckFileName(base) != nil {
		base = field + httpwire.Extension(mediaType(part))
	}
	name := contract.FreeName(base, base, func(name string) bool { return t.names[name] })
	t.names[name] = true
	return name
}

// placeText puts the texts into the field that takes text.
func (t *messageInput) placeText() error {
	if len(t.texts) == 0 {
		return nil
	}
	if t.field == "" {
		return refuse(badContent, "the unit takes no text. "+t.takes())
	}
	if _, given := t.values[t.field]; given {
		return refuse(badParams, "the message gives the field of the input that takes text also as data")
	}
	t.values[t.field] = joined(t.texts)
	return nil
}

// takes says what a unit takes.
func (t *messageInput) takes() string {
	if t.schema == nil {
		return "A task that goes on takes text and data"
	}
	said := []string{"The unit takes data (application/json)"}
	if t.field != "" {
		said = append(said, "text (text/plain), which is its field "+t.field)
	}
	if files := t.schema.TakingFiles(); len(files) > 0 {
		said = append(said, "files in raw, which are its fields "+strings.Join(files, ", "))
	}
	return strings.Join(said, "; ")
}

// textOf is the field of an input that takes text: the one that the unit names, else the
// customary one, else the only text of the input; "" where it has none.
func textOf(agent Agent, schema *contract.Schema) string {
	if agent.Text != "" {
		return agent.Text
	}
	texts := map[string]bool{}
	for _, f := range schema.Fields() {
		texts[f.Name] = isText(f)
	}
	for _, name := range customaryTexts {
		if texts[name] {
			return name
		}
	}
	return onlyText(schema)
}

// onlyText is the only field at the top of a schema that is a text, "" where there are none or
// several.
func onlyText(schema *contract.Schema) string {
	only := map[string]bool{}
	for _, f := range schema.Fields() {
		if isText(f) && !strings.Contains(f.Name, ".") && len(f.Choices) == 0 {
			only[f.Name] = true
		}
	}
	if len(only) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(only))[0]
}

func isText(f contract.Field) bool {
	return f.Type == "string" || f.Type == "string or null" || f.Type == "null or string"
}

// mediaType is the media type of a part, without parameters; "" for none, and what can't be read
// as it stands.
func mediaType(part *sdk.Part) string {
	media, _, err := mime.ParseMediaType(part.MediaType)
	if err != nil {
		return strings.ToLower(part.MediaType)
	}
	return media
}
