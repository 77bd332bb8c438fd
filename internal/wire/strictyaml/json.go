package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// fromJSON reads a JSON text (RFC 8259) by that RFC, which the YAML library doesn't: it knows neither \/ nor surrogate
// pairs, refuses tabs, and rounds numbers. The node is nil where the text isn't JSON.
func fromJSON(file string, raw []byte) (*yaml.Node, *fault.Finding) {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return nil, nil
	}
	var broken *strictjson.Error
	err := strictjson.Check(raw, strictjson.Rules{Unbounded: true})
	if errors.As(err, &broken) && broken.Problem == strictjson.HalfSurrogate {
		return nil, &fault.Finding{
			File: file, Line: broken.Line, Message: broken.Message(),
			Hint: "write both halves, or the character itself",
		}
	}
	b := jsonBuilder{raw: raw, decoder: json.NewDecoder(bytes.NewReader(raw)), line: 1}
	b.decoder.UseNumber()
	return b.value(b.token()), nil
}

// jsonBuilder makes nodes of a text that is known to be JSON.
type jsonBuilder struct {
	raw     []byte
	decoder *json.Decoder
	counted int // bytes of raw whose line breaks line has
	line    int
}

func (b *jsonBuilder) token() json.Token {
	token, _ := b.decoder.Token() // the text is valid
	end := int(b.decoder.InputOffset())
	b.line += bytes.Count(b.raw[b.counted:end], []byte("\n"))
	b.counted = end
	return token
}

func (b *jsonBuilder) value(token json.Token) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: b.line, Tag: "!!null", Value: "null"}
	switch v := token.(type) {
	case string:
		node.Tag, node.Value, node.Style = "!!str", v, yaml.DoubleQuotedStyle
	case json.Number:
		node.Tag, node.Value = "!!int", v.String()
		if strings.ContainsAny(node.Value, ".eE") {
			node.Tag = "!!float"
		}
	case bool:
		node.Tag, node.Value = "!!bool", "false"
		if v {
			node.Value = "true"
		}
	case json.Delim:
		node.Kind, node.Tag, node.Value = yaml.SequenceNode, "!!seq", ""
		if v == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		for b.decoder.More() {
			node.Content = append(node.Content, b.value(b.token())) // of a mapping the keys, too
		}
		b.token()
	}
	return node
}
