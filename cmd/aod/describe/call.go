package describe

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// exampleCall is a call of a unit as a shell takes it.
type exampleCall struct {
	Command string            `json:"command"`
	Input   json.RawMessage   `json:"input"`
	Files   map[string]string `json:"files,omitempty"` // path by field
	Works   bool              `json:"works"`           // as it stands
	Note    string            `json:"note,omitempty"`  // what it lacks
}

// maxExample bounds the input of a test case that makes an example, in bytes.
const maxExample = 2 << 10

// exampleOf is a call that a test case shows to work, or one made of the contract.
func exampleOf(command string, c *capsule.Capsule) *exampleCall {
	cases, _ := c.Cases() // broken ones are told by aod validate
	for _, test := range cases {
		if succeeds(test.Expect) && len(test.Input) <= maxExample && test.Timeout == 0 {
			return fromCase(command, test, c.Contract.Input)
		}
	}
	call := generated(command, c.Contract.Input)
	if c.IsAU() {
		call.Works, call.Note = false, "its model card says what it takes: aod au describe "+ui.Quoted(c.Dir)
	}
	return call
}

func succeeds(expect capsule.Expect) bool {
	return expect.Error == nil && (expect.ExitCode == nil || *expect.ExitCode == 0) &&
		(expect.Outcome == "" || expect.Outcome == "success")
}

func fromCase(command string, test capsule.Case, schema *contract.Schema) *exampleCall {
	call := &exampleCall{Command: command, Input: test.Input, Works: true}
	input, err := contract.Decode(test.Input, contract.DefaultMaxBytes)
	if err != nil {
		return generated(command, schema)
	}
	call.Command += inputText(input, schema)
	for _, field := range slices.Sorted(maps.Keys(test.Files)) {
		call.give(field, ui.RelativePath(test.Files[field]))
	}
	return call
}

func (c *exampleCall) give(field, path string) {
	if c.Files == nil {
		c.Files = map[string]string{}
	}
	c.Files[field] = path
	c.Command += " --file " + ui.Quoted(field+"="+path)
}

// generated makes a call of the contract alone.
func generated(command string, schema *contract.Schema) *exampleCall {
	input, ok := schema.Example()
	call := &exampleCall{Command: command + inputText(input, schema), Input: input.JSON(), Works: ok}
	for _, field := range schema.Fields() {
		if field.Required && field.IsFile() && !strings.Contains(field.Name, ".") {
			call.give(field.Name, "FILE")
			call.Note = "put a file of yours in place of FILE"
			call.Works = false
		}
	}
	if !call.Works && call.Note == "" {
		call.Note = "the contract asks for more than could be guessed: fix the input before you run it"
	}
	return call
}

// inputText writes an input as flags: --set for plain fields, else --input.
func inputText(input contract.Payload, schema *contract.Schema) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(input.JSON(), &object) != nil || len(object) == 0 {
		return ""
	}
	var flags strings.Builder
	for _, key := range slices.Sorted(maps.Keys(object)) {
		text, ok := setText(schema, key, object[key])
		if !ok {
			return " --input " + ui.Quoted(string(input.JSON()))
		}
		flags.WriteString(" --set " + ui.Quoted(key+"="+text))
	}
	return flags.String()
}

// setText returns what --set would take for a value. ok is false where it takes none.
func setText(schema *contract.Schema, key string, raw json.RawMessage) (text string, ok bool) {
	text = string(raw)
	if raw[0] == '"' && json.Unmarshal(raw, &text) != nil || raw[0] == '{' || raw[0] == '[' ||
		strings.Contains(key, ".") {
		return "", false
	}
	value, err := schema.ParseField(key, text)
	if err != nil {
		return "", false
	}
	again, err := json.Marshal(value)
	var compact any
	return text, err == nil && json.Unmarshal(raw, &compact) == nil &&
		ui.JSON(compact) == ui.JSON(json.RawMessage(again)) && !strings.ContainsAny(text, "\n\x00")
}
