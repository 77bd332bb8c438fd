package models

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// recorder implements gateway.Recorder for a run: an event, a metric and a span of
// each request, and a line of the transcript where there is one.
type recorder struct{ *account }

// Record implements gateway.Recorder.
func (r recorder) Record(e gateway.Exchange) {
	told := api.ModelCall{
		At: e.Started.UTC(), Dialect: string(e.Call.Dialect), Model: e.Call.Model, Provider: e.Call.Provider,
		Upstream: e.Call.Upstream,
		Source:   string(e.Source), Stream: e.Call.Stream, Status: e.Status, Rule: e.Rule, Attempts: e.Attempts,
		Raced:  e.Raced,
		Tokens: tokensOf(e.Spent.Usage), Charged: e.Spent.Amount.Tokens, Cost: api.Cost(e.Spent.Amount.Cost),
		Estimated: e.Spent.Estimated,
		FirstMS:   run.Milliseconds(e.First), MS: run.Milliseconds(e.Took),
	}
	r.figures.asked(told)
	r.figures.ofUnits.asked(&r.run.Record, &told)
	if r.spending.lists(told) {
		r.list(told, e)
		r.trace(e)
	}
}

// list keeps a call with the run, and tells it.
func (a *account) list(told api.ModelCall, e gateway.Exchange) {
	a.listing.Lock()
	defer a.listing.Unlock()
	var err error
	if told.N, err = a.transcript.add(told, e); err != nil {
		a.logger.Warn("model call not in the transcript", "run", a.run.ID, fault.LogAttr(err))
	}
	a.run.Tell(run.Event{Data: told})
}

// The names of OpenTelemetry's conventions for generative AI, which are still being worked on.
const (
	genOperation    = attribute.Key("gen_ai.operation.name")
	genProvider     = attribute.Key("gen_ai.provider.name")
	genConversation = attribute.Key("gen_ai.conversation.id")
	genModel        = attribute.Key("gen_ai.request.model")
	genMaxTokens    = attribute.Key("gen_ai.request.max_tokens")
	genStream       = attribute.Key("gen_ai.request.stream")
	genAnswerModel  = attribute.Key("gen_ai.response.model")
	genAnswerID     = attribute.Key("gen_ai.response.id")
	genReasons      = attribute.Key("gen_ai.response.finish_reasons")
	genFirstChunk   = attribute.Key("gen_ai.response.time_to_first_chunk") // in seconds
	genInput        = attribute.Key("gen_ai.usage.input_tokens")
	genOutput       = attribute.Key("gen_ai.usage.output_tokens")
	genCached       = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	genReasoning    = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	genServer       = attribute.Key("server.address")
	genError        = attribute.Key("error.type")
)

// trace adds the span of a request for a model below that of the run. It has names and
// figures, never content.
func (a *account) trace(e gateway.Exchange) {
	operation := "chat"
	if e.Call.Dialect == "embeddings" {
		operation = "embeddings"
	}
	attributes := []attribute.KeyValue{
		genOperation.String(operation), genConversation.String(e.Call.Root),
		genStream.Bool(e.Call.Stream),
	}
	name := operation
	if e.Call.Provider != "" { // else the name of the model is the capsule's word
		name += " " + e.Call.Model
		attributes = append(attributes, genModel.String(e.Call.Model), genProvider.String(e.Call.Provider),
			genMaxTokens.Int64(e.Call.MaxTokens))
	}
	span := a.run.Span(name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(e.Started),
		trace.WithAttributes(append(attributes, answerAttributes(e)...)...))
	if e.Rule != "" {
		span.SetStatus(codes.Error, e.Rule)
	}
	span.End(trace.WithTimestamp(e.Started.Add(e.Took)))
}

// answerAttributes are the attributes of an answer.
func answerAttributes(e gateway.Exchange) (all []attribute.KeyValue) {
	for key, value := range map[attribute.Key]string{
		genAnswerModel: e.About.Model, genAnswerID: e.About.ID,
		genServer: e.Server, genError: e.Rule,
	} {
		if value != "" {
			all = append(all, key.String(value))
		}
	}
	if len(e.About.Reasons) > 0 {
		all = append(all, genReasons.StringSlice(e.About.Reasons))
	}
	if e.First > 0 && e.Call.Stream {
		all = append(all, genFirstChunk.Float64(e.First.Seconds()))
	}
	u := e.Spent.Usage
	for key, n := range map[attribute.Key]int64{
		genInput: u.Input, genOutput: u.Output, genCached: u.Cached,
		genReasoning: u.Reasoning,
	} {
		if n > 0 {
			all = append(all, key.Int64(n))
		}
	}
	return all
}
