package gateway

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// way is one in which a request reaches out through a provider.
type way struct {
	name, path, body string
	status           int
	rule, open       string // open is "" where nothing opens it
}

func chat(part string) string {
	return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"https://example.com is fine"},` + part + `]}]}`
}

func message(part string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + part + `]}]}`
}

func response(part string) string {
	return `{"model":"m","input":[{"type":"message","role":"user","content":[` + part + `]}]}`
}

func with(path, field string) string {
	return strings.TrimSuffix(bodies[path], "}") + "," + field + "}"
}

var ways = []way{
	{"an image's address", "/chat/completions", chat(`{"type":"image_url","image_url":{"url":"https://evil/?data"}}`), 403, RuleURL, "remote_urls"},
	{"an image's address as a text", "/chat/completions", chat(`{"type":"image_url","image_url":"http://evil/"}`), 403, RuleURL, "remote_urls"},
	{"an escaped address", "/chat/completions", chat(`{"type":"image_url","image_url":{"url":"\u0068ttps://evil/"}}`), 403, RuleURL, "remote_urls"},
	{"an escaped name", "/chat/completions", chat(`{"type":"image_url","image_url":{"\u0075rl":"https://evil/"}}`), 403, RuleURL, "remote_urls"},
	{"an address under a new name", "/chat/completions", chat(`{"type":"text","text":"x","look_here":" HTTPS://evil/"}`), 403, RuleURL, "remote_urls"},
	{"an escaped address under a new name", "/chat/completions", chat(`{"type":"text","text":"x","look_here":"\u0068ttps://evil/"}`), 403, RuleURL, "remote_urls"},
	{"an escaped type", "/responses", with("/responses", `"tools":[{"\u0074ype":"\u0077eb_search"}]`), 403, RuleTool, "web_search"},
	{"a file's id", "/chat/completions", chat(`{"type":"file","file":{"file_id":"file-1"}}`), 403, RuleFile, "files"},
	{"a part that nobody knows", "/chat/completions", chat(`{"type":"video_clip","clip":"x"}`), 403, RulePart, "part:video_clip"},
	{"web search by a field", "/chat/completions", with("/chat/completions", `"web_search_options":{}`), 403, RuleField, "field:web_search_options"},
	{"a service tier", "/chat/completions", with("/chat/completions", `"service_tier":"priority"`), 403, RuleField, "field:service_tier"},
	{"a stored completion", "/chat/completions", with("/chat/completions", `"store":true`), 403, RuleField, "field:store"},
	{"other models", "/chat/completions", with("/chat/completions", `"models":["x"]`), 403, RuleField, "field:models"},
	{"a bound of another name", "/chat/completions", with("/chat/completions", `"n_predict":-1`), 403, RuleField, "field:n_predict"},
	{"web search as a tool", "/responses", with("/responses", `"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"web_search_preview"}]`), 403, RuleTool, "web_search"},
	{"a provider's MCP client", "/responses", with("/responses", `"tools":[{"type":"mcp","server_url":"https://evil/","server_label":"x"}]`), 403, RuleTool, "mcp"},
	{"a code interpreter", "/responses", with("/responses", `"tools":[{"container":{"type":"auto"},"type":"code_interpreter"}]`), 403, RuleTool, "code_interpreter"},
	{"a file's address", "/responses", response(`{"type":"input_file","file_url":"https://evil/a.pdf"}`), 403, RuleURL, "remote_urls"},
	{"an uploaded image", "/responses", response(`{"type":"input_image","file_id":"file-1"}`), 403, RuleFile, "files"},
	{"an image in a tool's result", "/responses", `{"model":"m","input":[{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"https://evil/"}]}]}`, 403, RuleURL, "remote_urls"},
	{"an earlier item", "/responses", `{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}`, 403, RulePart, "part:item_reference"},
	{"an earlier response", "/responses", with("/responses", `"previous_response_id":"resp_1"`), 403, RuleField, "field:previous_response_id"},
	{"a conversation", "/responses", with("/responses", `"conversation":"conv_1"`), 403, RuleField, "field:conversation"},
	{"a stored prompt", "/responses", with("/responses", `"prompt":{"id":"pmpt_1"}`), 403, RuleField, "field:prompt"},
	{"work in the background", "/responses", with("/responses", `"background":true`), 403, RuleField, "field:background"},
	{"MCP servers", "/messages", with("/messages", `"mcp_servers":[{"type":"url","url":"https://evil/"}]`), 403, RuleField, "field:mcp_servers"},
	{"a container", "/messages", with("/messages", `"container":"c_1"`), 403, RuleField, "field:container"},
	{"betas", "/messages", with("/messages", `"betas":["mcp-client-2025-04-04"]`), 403, RuleField, "field:betas"},
	{"web search with a version", "/messages", with("/messages", `"tools":[{"type":"web_search_20250305","name":"web_search"}]`), 403, RuleTool, "web_search"},
	{"an image's source", "/messages", message(`{"type":"image","source":{"type":"url","url":"https://evil/"}}`), 403, RuleURL, "remote_urls"},
	{"a document's source", "/messages", message(`{"source":{"url":"https://evil/","type":"url"},"type":"document"}`), 403, RuleURL, "remote_urls"},
	{"a document that is kept there", "/messages", message(`{"type":"document","source":{"type":"file","file_id":"file_1"}}`), 403, RuleFile, "files"},
	{"an address in a tool's result", "/messages", message(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"image","source":{"type":"url","url":"https://evil/"}}]}`), 403, RuleURL, "remote_urls"},
	{"an address in the system prompt", "/messages", with("/messages", `"system":[{"type":"document","source":{"type":"url","url":"https://evil/"}}]`), 403, RuleURL, "remote_urls"},
	{"an upload for a container", "/messages", message(`{"type":"container_upload","file_id":"file_1"}`), 403, RulePart, "part:container_upload"},
	{"a field that nobody knows", "/messages", with("/messages", `"reach_out":1`), 403, RuleField, "field:reach_out"},

	{"two models", "/chat/completions", `{"model":"m","model":"other","messages":[]}`, 400, RuleRequest, ""},
	{"two models, one escaped", "/chat/completions", `{"model":"m","mod\u0065l":"other","messages":[]}`, 400, RuleRequest, ""},
	{"two addresses", "/chat/completions", chat(`{"type":"image_url","image_url":{"url":"data:,","url":"https://evil/"}}`), 400, RuleRequest, ""},
	{"a model in another case", "/chat/completions", with("/chat/completions", `"Model":"other"`), 400, RuleField, ""},
	{"a long s for an s", "/chat/completions", with("/chat/completions", `"me\u017f\u017fages":[]`), 400, RuleField, ""},
	{"MCP servers in another case", "/messages", with("/messages", `"MCP_servers":[]`), 400, RuleField, ""},
	{"an address in another case", "/chat/completions", chat(`{"type":"image_url","image_url":{"URL":"https://evil/"}}`), 400, RuleField, ""},
	{"a type in another case, of a call", "/messages", message(`{"type":"tool_use","Type":"document","id":"1","name":"f","input":{}}`), 400, RuleField, ""},
	{"a type in another case", "/responses", with("/responses", `"tools":[{"Type":"web_search"}]`), 400, RuleField, ""},
}

// strictBench has a provider of which all fields are known, and what it is asked.
func strictBench(t *testing.T, allow ...string) (*bench, *double) {
	provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{}],"content":[],"output":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1}}`))
	})
	b := newBench(t, provider.URL)
	p, m := b.catalog.Providers["p"], b.catalog.Models["m"]
	p.AnyField, m.Allow = false, allow
	b.catalog.Providers["p"], b.catalog.Models["m"] = p, m
	return b.serve(), provider
}

func TestWaysOutThroughAProviderAreRefused(t *testing.T) {
	var every []string
	for _, w := range ways {
		if w.open != "" {
			every = append(every, w.open)
		}
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			b, provider := strictBench(t)
			if p := b.ask("POST", w.path, w.body).problem(t, w.status, w.rule); w.open != "" && !strings.Contains(p.Error.Hint, "["+w.open+"]") {
				t.Errorf("it doesn't say what opens it: %+v", p)
			}
			var others []string
			for _, open := range every {
				if open != w.open {
					others = append(others, open)
				}
			}
			others0, _ := strictBench(t, others...)
			others0.ask("POST", w.path, w.body).problem(t, w.status, w.rule)
			if len(provider.requests()) != 0 {
				t.Error("it went out")
			}
			if w.open == "" {
				return
			}
			opened, provider := strictBench(t, w.open)
			if a := opened.ask("POST", w.path, w.body); a.status != 200 || len(provider.requests()) != 1 {
				t.Errorf("its own word doesn't open it: %d %s", a.status, a.body)
			}
		})
	}
}

// What reaches nowhere goes on.
func TestWhatReachesNowhereIsPassedOn(t *testing.T) {
	for name, c := range map[string]struct{ path, body string }{
		"an address in a text":           {"/chat/completions", chat(`{"type":"text","text":"https://x/"}`)},
		"an address as the whole prompt": {"/responses", `{"model":"m","input":"https://x/","instructions":"https://y/"}`},
		"an image in the body":           {"/chat/completions", chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)},
		"an address in a schema":         {"/chat/completions", with("/chat/completions", `"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"https://json-schema.org/","properties":{"url":{"type":"string","default":"https://x/"}}}}}]`)},
		"a custom tool":                  {"/responses", with("/responses", `"tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"lark","definition":"x"}}]`)},
		"a call with an address":         {"/messages", message(`{"type":"tool_use","id":"1","name":"fetch","input":{"url":"https://x/","file_id":"1","type":"whatever"}}`)},
		"arguments with an address":      {"/responses", `{"model":"m","input":[{"type":"function_call","call_id":"1","name":"f","arguments":"https://x/"},{"type":"function_call_output","call_id":"1","output":"https://y/"}]}`},
		"what a result was found in":     {"/messages", message(`{"type":"search_result","source":"https://x/","title":"t","content":[{"type":"text","text":"x"}]}`)},
		"what a model has cited":         {"/messages", message(`{"type":"text","text":"x","citations":[{"type":"web","url":"https://x/"}]}`)},
		"a tool that is cached":          {"/messages", with("/messages", `"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`)},
		"names of others in a schema":    {"/chat/completions", with("/chat/completions", `"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"Type":{},"URL":{},"Data":{},"Source":{},"File_ID":{}}}}}]`)},
		"names of others in a tool":      {"/messages", with("/messages", `"tools":[{"name":"f","input_schema":{"properties":{"Type":{"TYPE":"x"},"URL":{}}}}]`)},
		"names of others in a flat tool": {"/responses", with("/responses", `"tools":[{"type":"function","name":"f","parameters":{"properties":{"Server_URL":{},"DATA":{}}}}]`)},
		"names of others in a call":      {"/messages", message(`{"type":"tool_use","id":"1","name":"f","input":{"Type":"a","Url":["https://x/"],"Source":{"DATA":"x"}}}`)},
		"names of others in arguments":   {"/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"URL":"https://x/"}}}]}]}`},
		"names of others in metadata":    {"/responses", `{"model":"m","metadata":{"Type":"x"},"input":[{"type":"message","role":"user","content":"x","metadata":{"URL":"https://x/"}}]}`},
		"names of others in a format":    {"/chat/completions", with("/chat/completions", `"response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"Type":{}}}}}`)},
		"fields without a value":         {"/responses", with("/responses", `"service_tier":null,"background":false,"previous_response_id":null`)},
	} {
		t.Run(name, func(t *testing.T) {
			b, provider := strictBench(t)
			if a := b.ask("POST", c.path, c.body); a.status != 200 || len(provider.requests()) != 1 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

// A provider that isn't a vendor gets the fields of its dialect, too, and others by the operator's word alone.
func TestACompatibleServerGetsAFieldThatNobodyKnowsByTheOperatorsWord(t *testing.T) {
	const more = `"guided_regex":"a+","top_k":3`
	for name, c := range map[string]struct {
		fields, allow, refused string
	}{
		"none is allowed":       {"", "", "guided_regex"},
		"one is allowed":        {"", "'field:guided_regex'", "top_k"},
		"both are allowed":      {"", "'field:guided_regex', 'field:top_k'", ""},
		"whatever there may be": {", fields: any", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newDouble(t, well)
			known, findings := catalog.Read("models.yaml", fmt.Appendf(nil,
				"providers: {p: {kind: compatible, base_url: %q%s}}\nmodels: {m: {use: [p/up], allow: [files, %s]}}", provider.URL, c.fields, c.allow))
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			b := newBench(t, "")
			b.catalog = known
			a := b.serve().ask("POST", "/chat/completions", with("/chat/completions", more))
			if c.refused == "" {
				if got := provider.requests(); a.status != 200 || len(got) != 1 || !strings.Contains(got[0], more+"}") {
					t.Errorf("%s, asked %q", a.body, got)
				}
				b.ask("POST", "/chat/completions", with("/chat/completions", `"api_base":"https://evil/"`)).problem(t, 403, RuleField)
				return
			}
			p := a.problem(t, 403, RuleField)
			if !strings.Contains(p.Error.Message, strconv.Quote(c.refused)) || !strings.Contains(p.Error.Hint, "models.m.allow: [field:"+c.refused+"]") || len(provider.requests()) > 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}
