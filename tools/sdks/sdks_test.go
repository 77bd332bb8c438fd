package sdks

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
)

// serve returns the address of a gateway whose models answer from a script, in some dialects; without any, in all.
func serve(t *testing.T, answers string, speaks ...catalog.Dialect) string {
	t.Helper()
	s, findings := script.Read("script.yaml", []byte(answers))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if len(speaks) == 0 {
		speaks = catalog.Dialects()
	}
	g, err := gateway.New(catalog.Catalog{
		Providers: map[string]catalog.Provider{"p": {Kind: catalog.Compatible, Dialects: speaks}},
		Models:    map[string]catalog.Model{"small": {Use: []catalog.Use{{Provider: "p", Model: "x"}}}},
	}, gateway.Options{Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g.Handler(gateway.Session{Run: "run", Models: []string{"small"}, Script: s}))
	t.Cleanup(server.Close)
	return server.URL
}

func openAI(t *testing.T, answers string, speaks ...catalog.Dialect) openai.Client {
	return openai.NewClient(option.WithBaseURL(serve(t, answers, speaks...)+"/v1"), option.WithAPIKey("aod"))
}

func claude(t *testing.T, answers string, speaks ...catalog.Dialect) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithBaseURL(serve(t, answers, speaks...)), anthropicoption.WithAPIKey("aod"))
}

const (
	hello = `[{text: "Hello, world: a text that comes in parts", usage: {input: 7, output: 3}}]`
	tools = `[{tool_calls: [{name: ocr, arguments: {page: 1}}]}]`
)

func chat() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "small", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")}}
}

func message() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "small", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hi"))}}
}

func TestOpenAIAsksPlainly(t *testing.T) {
	client := openAI(t, hello)
	got, err := client.Chat.Completions.New(t.Context(), chat())
	if err != nil || !strings.HasPrefix(got.Choices[0].Message.Content, "Hello") || got.Usage.TotalTokens != 10 {
		t.Fatal(err, got)
	}
	list, err := client.Models.List(t.Context())
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != "small" {
		t.Error(err, list)
	}
}

func TestOpenAIStreams(t *testing.T) {
	client := openAI(t, hello)
	stream := client.Chat.Completions.NewStreaming(t.Context(), chat())
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || !strings.HasSuffix(all.Choices[0].Message.Content, "in parts") || all.Usage.TotalTokens != 0 {
		t.Error(err, all)
	}
}

func TestOpenAIGetsToolCalls(t *testing.T) {
	client := openAI(t, tools)
	got, err := client.Chat.Completions.New(t.Context(), chat())
	if err != nil || got.Choices[0].Message.ToolCalls[0].Function.Arguments != `{"page":1}` {
		t.Error(err, got)
	}
}

func TestOpenAIResponsesAndEmbeddings(t *testing.T) {
	client := openAI(t, strings.Replace(hello, "]", "", 1)+`, {text: again}]`)
	ask := responses.ResponseNewParams{Model: "small", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi")}}
	got, err := client.Responses.New(t.Context(), ask)
	if err != nil || !strings.HasPrefix(got.OutputText(), "Hello") || got.Usage.TotalTokens != 10 {
		t.Fatal(err, got)
	}
	stream := client.Responses.NewStreaming(t.Context(), ask)
	var text strings.Builder
	for stream.Next() {
		text.WriteString(stream.Current().AsResponseOutputTextDelta().Delta)
	}
	if err := stream.Err(); err != nil || !strings.Contains(text.String(), "again") {
		t.Error(err, text.String())
	}
	vectors, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("Hi")}})
	if err != nil || len(vectors.Data) != 1 {
		t.Error(err, vectors)
	}
}

// An error comes once: clients don't try again for minutes.
func TestErrorsAreUnderstoodAndFinal(t *testing.T) {
	client := openAI(t, hello)
	ask := chat()
	ask.Model = "large"
	_, err := client.Chat.Completions.New(t.Context(), ask)
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != 404 || refused.Code != "model" {
		t.Errorf("%v", err)
	}
	start := time.Now()
	other := claude(t, `[{status: 500}, {status: 500}, {status: 500}, {text: too late}]`)
	_, err = other.Messages.New(t.Context(), message())
	var failed *anthropic.Error
	if !errors.As(err, &failed) || failed.StatusCode != 502 || !strings.Contains(failed.RawJSON(), `"rule":"provider"`) {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

func TestAnthropicAsksPlainlyAndGetsToolCalls(t *testing.T) {
	client := claude(t, hello)
	got, err := client.Messages.New(t.Context(), message())
	if err != nil || !strings.HasPrefix(got.Content[0].Text, "Hello") || got.Usage.OutputTokens != 3 {
		t.Fatal(err, got)
	}
	client = claude(t, tools)
	if got, err = client.Messages.New(t.Context(), message()); err != nil || string(got.Content[0].AsToolUse().Input) != `{"page":1}` {
		t.Error(err, got)
	}
}

func TestAnthropicStreams(t *testing.T) {
	client := claude(t, hello)
	stream := client.Messages.NewStreaming(t.Context(), message())
	var all anthropic.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil || !strings.HasSuffix(all.Content[0].Text, "in parts") || all.Usage.OutputTokens != 3 {
		t.Error(err, all)
	}
}

func TestACancelledRequestEnds(t *testing.T) {
	client := openAI(t, `[{text: never, pause: 1h}]`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.Chat.Completions.New(ctx, chat()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
