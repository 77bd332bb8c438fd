package gateway

import (
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// dialect is what the gateway knows of a way to speak with a model.
type dialect struct {
	name  catalog.Dialect
	path  string   // below /v1
	known []string // fields at the top of a request that a vendor has and that reach no further
	caps  []string // of them, those that bound the answer
	parts []string // of them, those with parts that are looked through
	image imageForm
}

// imageForm is how a dialect writes an image among the parts of a message.
type imageForm struct {
	typ    string   // of the part
	member string   // of the part, with the data
	at     []string // the ways from the list of messages to such a part, by names
}

// dialects are all of them. A vendor's new field is refused until it stands here, or until an
// operator allows it.
var dialects = []*dialect{
	{
		name: catalog.Chat, path: "/chat/completions",
		caps:  []string{"max_tokens", "max_completion_tokens"},
		parts: []string{"messages", "tools", "prediction"},
		image: imageForm{typ: "image_url", member: "image_url", at: []string{"content"}},
		known: words(`model messages stream stream_options max_tokens max_completion_tokens n stop temperature top_p
			frequency_penalty presence_penalty logit_bias logprobs top_logprobs seed tools tool_choice
				parallel_tool_calls
			functions function_call response_format reasoning_effort verbosity user safety_identifier prompt_cache_key
			metadata modalities audio prediction store`),
	},
	{
		name: catalog.Responses, path: "/responses",
		caps:  []string{"max_output_tokens"},
		parts: []string{"input", "tools", "instructions"},
		image: imageForm{typ: "input_image", member: "image_url", at: []string{"content", "output"}},
		known: words(`model input instructions stream stream_options max_output_tokens max_tool_calls temperature top_p
			top_logprobs tools tool_choice parallel_tool_calls text reasoning include metadata user safety_identifier
			prompt_cache_key truncation store background`),
	},
	{
		name: catalog.Messages, path: "/messages",
		caps:  []string{"max_tokens"},
		parts: []string{"messages", "tools", "system"},
		image: imageForm{typ: "image", member: "source", at: []string{"content", "content/content"}},
		known: words(`model messages system stream max_tokens stop_sequences temperature top_k top_p tools tool_choice
			thinking metadata output_config cache_control`),
	},
	{
		name: catalog.Embeddings, path: "/embeddings",
		parts: []string{"input"},
		known: words(`model input dimensions encoding_format user`),
	},
}

// bringing are fields at the top with which a model reads more than stands in the request.
var bringing = words(`mcp_servers container web_search_options previous_response_id conversation prompt plugins
	transforms
	skills files file_ids data_sources search_parameters chat_template`)

// sealed are those, and others with which a provider would fetch, run, keep or look up
// something, take another model, price or key, or answer without a bound.
var sealed = append(words(`service_tier betas best_of n_predict num_predict options inference_geo speed models route
	provider
	fallbacks preset api_base api_key base_url custom_llm_provider extra_body`), bringing...)

// harmless are values with which some fields do nothing.
var harmless = map[string]string{"store": "false", "background": "false"}

func words(text string) []string { return strings.Fields(text) }

// dialectAt returns the dialect of a path, and whether there is one.
func dialectAt(path string) (*dialect, bool) {
	path = strings.TrimPrefix(path, "/v1")
	for _, d := range dialects {
		if d.path == path {
			return d, true
		}
	}
	return nil, false
}
