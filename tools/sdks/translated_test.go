package sdks

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// both are an answer with all that a stream has: a text and two calls. The second answer is the same.
const (
	once = `{text: "Hello, world: a text that comes in parts", tool_calls: [{name: ocr, arguments: {page: 1}}, {name: now}], usage: {input: 7, output: 3}}`
	both = "[" + once + "," + once + "]"
)

// others are the dialects of a provider that doesn't speak the client's.
func others(t *testing.T, client catalog.Dialect, test func(t *testing.T, provider catalog.Dialect)) {
	for _, d := range []catalog.Dialect{catalog.Chat, catalog.Responses, catalog.Messages} {
		if d != client {
			t.Run("of "+string(d), func(t *testing.T) { test(t, d) })
		}
	}
}

func TestChatCompletionsOfAnotherDialect(t *testing.T) {
	others(t, catalog.Chat, func(t *testing.T, provider catalog.Dialect) {
		client := openAI(t, both, provider)
		got, err := client.Chat.Completions.New(t.Context(), chat())
		if err != nil {
			t.Fatal(err)
		}
		message := got.Choices[0].Message
		if !strings.HasSuffix(message.Content, "in parts") || message.ToolCalls[0].Function.Arguments != `{"page":1}` || got.Choices[0].FinishReason != "tool_calls" || got.Usage.TotalTokens != 10 {
			t.Error(got)
		}
		ask := chat()
		ask.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(t.Context(), ask)
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			if !all.AddChunk(stream.Current()) {
				t.Fatalf("it doesn't fit: %+v", stream.Current())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		message = all.Choices[0].Message
		if !strings.HasSuffix(message.Content, "in parts") || len(message.ToolCalls) != 2 || message.ToolCalls[1].Function.Arguments != "{}" || all.Usage.TotalTokens != 10 {
			t.Errorf("%+v", all)
		}
	})
}

func TestResponsesOfAnotherDialect(t *testing.T) {
	others(t, catalog.Responses, func(t *testing.T, provider catalog.Dialect) {
		client := openAI(t, both, provider)
		ask := responses.ResponseNewParams{Model: "small", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi")}}
		got, err := client.Responses.New(t.Context(), ask)
		if err != nil || !strings.HasSuffix(got.OutputText(), "in parts") || len(got.Output) != 3 || got.Output[1].AsFunctionCall().Arguments != `{"page":1}` || got.Usage.TotalTokens != 10 {
			t.Fatal(err, got)
		}
		stream := client.Responses.NewStreaming(t.Context(), ask)
		var text strings.Builder
		var whole responses.Response
		for stream.Next() {
			if stream.Current().Type == "response.output_text.delta" {
				text.WriteString(stream.Current().AsResponseOutputTextDelta().Delta)
			}
			if stream.Current().Type == "response.completed" {
				whole = stream.Current().AsResponseCompleted().Response
			}
		}
		if err := stream.Err(); err != nil || text.String() != whole.OutputText() || len(whole.Output) != 3 || whole.Usage.TotalTokens != 10 {
			t.Error(err, text.String(), whole)
		}
	})
}

func TestMessagesOfAnotherDialect(t *testing.T) {
	others(t, catalog.Messages, func(t *testing.T, provider catalog.Dialect) {
		client := claude(t, both, provider)
		got, err := client.Messages.New(t.Context(), message())
		if err != nil || !strings.HasSuffix(got.Content[0].Text, "in parts") || string(got.Content[1].AsToolUse().Input) != `{"page":1}` || got.StopReason != "tool_use" || got.Usage.OutputTokens != 3 {
			t.Fatal(err, got)
		}
		stream := client.Messages.NewStreaming(t.Context(), message())
		var all anthropic.Message
		for stream.Next() {
			if err := all.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil || len(all.Content) != 3 || string(all.Content[2].AsToolUse().Input) != "{}" || all.StopReason != "tool_use" || all.Usage.OutputTokens != 3 {
			t.Error(err, all)
		}
	})
}

func TestAFieldThatCanNotBeSaidIsNamed(t *testing.T) {
	client := openAI(t, both, catalog.Messages)
	ask := chat()
	ask.Seed = openai.Int(7)
	_, err := client.Chat.Completions.New(t.Context(), ask)
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Code != "dialect" || !strings.Contains(refused.Message, "/seed") {
		t.Errorf("%v", err)
	}
}
