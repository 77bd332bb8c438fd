package live

import (
	"encoding/json"
	"strconv"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// Kind is what a piece is of.
type Kind string

// The kinds.
const (
	Text      Kind = "text"      // of the answer
	Thought   Kind = "thought"   // before it
	Arguments Kind = "arguments" // of a call of a tool
)

// Piece is some of what a model says.
type Piece struct {
	Kind Kind
	Part string // of which part of the answer: pieces of the same one belong together
	Tool string // the name of the tool that Arguments are for
	Text string
}

// maxTools bounds of how many calls in an answer the tool is known.
const maxTools = 200

// Words reads what a model says in the events of one stream, of its first choice. It isn't for several at once.
type Words struct {
	dialect catalog.Dialect
	tools   map[string]string // by part
}

// NewWords returns Words of a stream in a dialect. One of embeddings says nothing.
func NewWords(d catalog.Dialect) *Words { return &Words{dialect: d, tools: map[string]string{}} }

// Next returns what the data of an event says.
func (w *Words) Next(data []byte) []Piece {
	switch w.dialect {
	case catalog.Chat:
		return w.ofChat(data)
	case catalog.Messages:
		return w.ofMessages(data)
	case catalog.Responses:
		return w.ofResponses(data)
	}
	return nil
}

type chatChunk struct {
	Choices []struct {
		Index int
		Delta struct {
			Content   any    // a list, of some servers
			Reasoning string `json:"reasoning_content"` // DeepSeek's, vLLM's
			Thinks    any    `json:"reasoning"`         // OpenRouter's, Groq's
			ToolCalls []struct {
				Index    int
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
}

func (w *Words) ofChat(data []byte) (said []Piece) {
	var chunk chatChunk
	if json.Unmarshal(data, &chunk) != nil {
		return nil
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		delta := choice.Delta
		thinks, _ := delta.Thinks.(string)
		if delta.Reasoning != "" {
			thinks = delta.Reasoning
		}
		said = add(said, Piece{Kind: Thought, Text: thinks})
		text, _ := delta.Content.(string)
		said = add(said, Piece{Kind: Text, Text: text})
		for _, call := range delta.ToolCalls {
			part := strconv.Itoa(call.Index)
			w.begins(part, call.Function.Name)
			said = add(said, w.arguments(part, call.Function.Arguments))
		}
	}
	return said
}

// add leaves out what says nothing.
func add(said []Piece, p Piece) []Piece {
	if p.Text == "" {
		return said
	}
	return append(said, p)
}

func (w *Words) begins(part, tool string) {
	if tool != "" && len(w.tools) < maxTools {
		w.tools[part] = tool
	}
}

func (w *Words) arguments(part, text string) Piece {
	return Piece{Kind: Arguments, Part: part, Tool: w.tools[part], Text: text}
}

func (w *Words) ofMessages(data []byte) []Piece {
	var event struct {
		Index int
		Block struct{ Type, Name string } `json:"content_block"`
		Delta struct {
			Type, Text, Thinking string
			Partial              string `json:"partial_json"`
		}
	}
	if json.Unmarshal(data, &event) != nil {
		return nil
	}
	part := strconv.Itoa(event.Index)
	if event.Block.Type == "tool_use" {
		w.begins(part, event.Block.Name)
	}
	switch event.Delta.Type {
	case "text_delta":
		return add(nil, Piece{Kind: Text, Part: part, Text: event.Delta.Text})
	case "thinking_delta":
		return add(nil, Piece{Kind: Thought, Part: part, Text: event.Delta.Thinking})
	case "input_json_delta":
		return add(nil, w.arguments(part, event.Delta.Partial))
	}
	return nil
}

func (w *Words) ofResponses(data []byte) []Piece {
	var event struct {
		Type  string
		Index int `json:"output_index"`
		Delta any // a text, where it is read
		Item  struct{ Type, Name string }
	}
	if json.Unmarshal(data, &event) != nil {
		return nil
	}
	part, text := strconv.Itoa(event.Index), ""
	text, _ = event.Delta.(string)
	switch event.Type {
	case "response.output_item.added":
		w.begins(part, event.Item.Name)
	case "response.output_text.delta":
		return add(nil, Piece{Kind: Text, Part: part, Text: text})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return add(nil, Piece{Kind: Thought, Part: part, Text: text})
	case "response.function_call_arguments.delta":
		return add(nil, w.arguments(part, text))
	}
	return nil
}
