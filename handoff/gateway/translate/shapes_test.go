package translate

import (
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

var spoken = []catalog.Dialect{catalog.Chat, catalog.Responses, catalog.Messages}

// pair is a way to translate.
type pair struct{ asker, provider catalog.Dialect }

func (p pair) String() string { return string(p.asker) + " to " + string(p.provider) }

func pairs() (all []pair) {
	for _, a := range spoken {
		for _, b := range spoken {
			if a != b {
				all = append(all, pair{a, b})
			}
		}
	}
	return all
}

// piece is a part of a request by its name. After "!" stand the dialects that can't say it, each with the field that is
// named.
type piece struct{ text, unsaid string }

// asks are requests of each dialect in pieces: what is said, and fields at the top.
var asks = map[catalog.Dialect]struct {
	list         string // the field with the conversation
	before, last string // of a conversation that has something in it before its end
	said, top    map[string]piece
}{
	catalog.Chat: {
		list: "messages", before: `{"role":"user","content":"Look"}`, last: `{"role":"user","content":"Go on"}`,
		said: map[string]piece{
			"a system's text":     {text: `{"role":"system","content":"Be brief"}`, unsaid: "messages /messages/1"},
			"a developer's parts": {text: `{"role":"developer","content":[{"type":"text","text":"Be"},{"type":"text","text":"brief"}]}`, unsaid: "messages /messages/1"},
			"a user's parts":      {text: `{"role":"user","content":[{"type":"text","text":"What"},{"type":"text","text":"is it?"}]}`},
			"an image":            {text: `{"role":"user","content":[{"type":"text","text":"What?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}`},
			"an image elsewhere":  {text: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"auto"}}]}`},
			"a small image":       {text: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"low"}}]}`, unsaid: "messages /messages/1/content/0/image_url/detail"},
			"a text as an image":  {text: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml,<svg>"}}]}`, unsaid: "messages /messages/1/content/0"},
			"a recording":         {text: `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}]}`, unsaid: "messages /messages/1/content/0/type responses /messages/1/content/0/type"},
			"a file":              {text: `{"role":"user","content":[{"type":"file","file":{"file_data":"aGk="}}]}`, unsaid: "messages /messages/1/content/0/type responses /messages/1/content/0/type"},
			"a user's name":       {text: `{"role":"user","content":"Hi","name":"ada"}`, unsaid: "messages /messages/1/name responses /messages/1/name"},
			"an answer":           {text: `{"role":"assistant","content":"Hello"}`},
			"an empty answer":     {text: `{"role":"assistant","content":null,"refusal":null,"tool_calls":null}`},
			"a refusal":           {text: `{"role":"assistant","content":null,"refusal":"I won't"}`, unsaid: "messages /messages/1/refusal"},
			"a refusal's part":    {text: `{"role":"assistant","content":[{"type":"refusal","refusal":"I won't"}]}`, unsaid: "messages /messages/1/content/0"},
			"a call":              {text: chatCalled(1) + "," + chatResult(1, `"2 pages"`)},
			"calls at once":       {text: chatCalled(3) + "," + chatResult(1, `"one"`) + "," + chatResult(2, `[{"type":"text","text":"two"}]`) + "," + chatResult(3, `""`)},
			"a text and a call":   {text: strings.Replace(chatCalled(1), "null", `"I look"`, 1) + "," + chatResult(1, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)},
			"a call, badly put":   {text: strings.ReplaceAll(chatCalled(1), `{\"page\":1}`, `{page`) + "," + chatResult(1, `"?"`), unsaid: "messages /messages/1/tool_calls/0/function/arguments"},
			"a call with nothing": {text: strings.ReplaceAll(chatCalled(1), `{\"page\":1}`, ``) + "," + chatResult(1, `"?"`)},
			"an older call":       {text: `{"role":"assistant","content":null,"function_call":{"name":"ocr","arguments":"{}"}}`, unsaid: "messages /messages/1/function_call responses /messages/1/function_call"},
			"an older result":     {text: `{"role":"function","name":"ocr","content":"x"}`, unsaid: "messages /messages/1/role responses /messages/1/role"},
			"thoughts":            {text: `{"role":"assistant","content":"Hello","reasoning_content":"Hm"}`, unsaid: "messages /messages/1/reasoning_content responses /messages/1/reasoning_content"},
		},
		top: map[string]piece{
			"a cap":             {text: `"max_tokens":70`},
			"a new cap":         {text: `"max_completion_tokens":70`},
			"both caps":         {text: `"max_completion_tokens":70,"max_tokens":71`, unsaid: "messages /max_tokens responses /max_tokens"},
			"a temperature":     {text: `"temperature":0.7,"top_p":0.9`},
			"a hot temperature": {text: `"temperature":1.5`, unsaid: "messages /temperature"},
			"a stop":            {text: `"stop":"END"`, unsaid: "responses /stop"},
			"stops":             {text: `"stop":["END","STOP"]`, unsaid: "responses /stop"},
			"a stream":          {text: `"stream":true,"stream_options":{"include_usage":true}`},
			"no stream":         {text: `"stream":false`},
			"an effort":         {text: `"reasoning_effort":"high"`},
			"no effort":         {text: `"reasoning_effort":"none"`},
			"a small effort":    {text: `"reasoning_effort":"minimal"`, unsaid: "messages /reasoning_effort"},
			"a verbosity":       {text: `"verbosity":"low"`, unsaid: "messages /verbosity"},
			"a cache key":       {text: `"prompt_cache_key":"k"`, unsaid: "messages /prompt_cache_key"},
			"metadata":          {text: `"metadata":{"a":"b"}`, unsaid: "messages /metadata"},
			"a user":            {text: `"user":"ada"`},
			"a safe user":       {text: `"safety_identifier":"ada"`},
			"two users":         {text: `"safety_identifier":"ada","user":"bob"`, unsaid: "messages /safety_identifier"},
			"a seed":            {text: `"seed":7`, unsaid: "messages /seed responses /seed"},
			"two answers":       {text: `"n":2`, unsaid: "messages /n responses /n"},
			"a penalty":         {text: `"frequency_penalty":0.5`, unsaid: "messages /frequency_penalty responses /frequency_penalty"},
			"what does nothing": {text: `"n":1,"frequency_penalty":0,"presence_penalty":0,"logprobs":false,"modalities":["text"],"store":false,"logit_bias":{},"functions":null`},
			"logprobs":          {text: `"logprobs":true`, unsaid: "messages /logprobs responses /logprobs"},
			"a prediction":      {text: `"prediction":{"type":"content","content":"x"}`, unsaid: "messages /prediction responses /prediction"},
			"tools":             {text: `"tools":[` + chatTool(`"parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}`) + `],"tool_choice":"auto"`},
			"strict tools":      {text: `"tools":[` + chatTool(`"parameters":{},"strict":true`) + `],"tool_choice":"required","parallel_tool_calls":false`},
			"bare tools":        {text: `"tools":[{"type":"function","function":{"name":"now"}}],"parallel_tool_calls":true,"tool_choice":"none"`},
			"a chosen tool":     {text: `"tools":[` + chatTool(`"parameters":{}`) + `],"tool_choice":{"type":"function","function":{"name":"ocr"}}`},
			"a custom tool":     {text: `"tools":[{"type":"custom","custom":{"name":"x"}}]`, unsaid: "messages /tools/0/type responses /tools/0/type"},
			"allowed tools":     {text: `"tool_choice":{"type":"allowed_tools","allowed_tools":{}}`, unsaid: "messages /tool_choice/type responses /tool_choice/type"},
			"older functions":   {text: `"functions":[{"name":"x"}]`, unsaid: "messages /functions responses /functions"},
			"a text":            {text: `"response_format":{"type":"text"}`},
			"any JSON":          {text: `"response_format":{"type":"json_object"}`, unsaid: "messages /response_format/type"},
			"a schema":          {text: `"response_format":{"type":"json_schema","json_schema":{"name":"city","schema":{"type":"object","additionalProperties":false},"strict":true}}`},
			"a described one":   {text: `"response_format":{"type":"json_schema","json_schema":{"name":"city","description":"d","schema":{"type":"object"}}}`, unsaid: "messages /response_format/json_schema/description"},
			"a loose schema":    {text: `"response_format":{"type":"json_schema","json_schema":{"name":"city","schema":{},"strict":false}}`, unsaid: "messages /response_format/json_schema/strict"},
			"a titled schema":   {text: `"response_format":{"type":"json_schema","json_schema":{"name":"city","schema":{"title":"City"}}}`, unsaid: "messages /response_format/json_schema/name"},
			"a grammar":         {text: `"response_format":{"type":"grammar"}`, unsaid: "messages /response_format/type responses /response_format/type"},
			"an unknown field":  {text: `"top_k":3`, unsaid: "messages /top_k responses /top_k"},
		},
	},
	catalog.Responses: {
		list: "input", before: `{"role":"user","content":"Look"}`, last: `{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on"}]}`,
		said: map[string]piece{
			"a system's text":       {text: `{"role":"system","content":"Be brief"}`, unsaid: "messages /input/1"},
			"a developer's parts":   {text: `{"role":"developer","content":[{"type":"input_text","text":"Be"},{"type":"input_text","text":"brief"}]}`, unsaid: "messages /input/1"},
			"an image":              {text: `{"role":"user","content":[{"type":"input_text","text":"What?"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}`},
			"an image elsewhere":    {text: `{"role":"user","content":[{"type":"input_image","image_url":"https://x.test/a.png","detail":"auto"}]}`},
			"a large image":         {text: `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"high"}]}`, unsaid: "messages /input/1/content/0/detail"},
			"a kept image":          {text: `{"role":"user","content":[{"type":"input_image","file_id":"f"}]}`, unsaid: "messages /input/1/content/0/file_id chat /input/1/content/0/file_id"},
			"a file":                {text: `{"role":"user","content":[{"type":"input_file","file_data":"aGk="}]}`, unsaid: "messages /input/1/content/0/type chat /input/1/content/0/type"},
			"an answer":             {text: `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}`},
			"a cited answer":        {text: `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[{"type":"url_citation"}]}]}`, unsaid: "messages /input/1/content/0/annotations chat /input/1/content/0/annotations"},
			"an answer in parts":    {text: `{"role":"assistant","content":[{"type":"output_text","text":"Hello"},{"type":"output_text","text":" you"}]}`},
			"a refusal":             {text: `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"refusal","refusal":"I won't"}]}`, unsaid: "messages /input/1/content/0"},
			"a call":                {text: responsesCalled(1) + "," + responsesResult(1, `"2 pages"`)},
			"calls at once":         {text: responsesCalled(1) + "," + responsesCalled(2) + "," + responsesResult(1, `"one"`) + "," + responsesResult(2, `[{"type":"input_text","text":"two"}]`)},
			"a text and calls":      {text: `{"role":"assistant","content":"I look"},` + responsesCalled(1) + "," + responsesCalled(2) + "," + responsesResult(1, `"one"`) + "," + responsesResult(2, `""`)},
			"a text after a call":   {text: responsesCalled(1) + `,{"role":"assistant","content":"I look"},` + responsesResult(1, `"one"`)},
			"an image as a result":  {text: responsesCalled(1) + "," + responsesResult(1, `[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]`), unsaid: "chat /input/2/output/0"},
			"a call, badly put":     {text: strings.ReplaceAll(responsesCalled(1), `{\"page\":1}`, `[1]`) + "," + responsesResult(1, `"?"`), unsaid: "messages /input/1/arguments"},
			"thoughts":              {text: `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`, unsaid: "messages /input/1/type chat /input/1/type"},
			"a reference":           {text: `{"type":"item_reference","id":"msg_1"}`, unsaid: "messages /input/1/type chat /input/1/type"},
			"a custom call":         {text: `{"type":"custom_tool_call","call_id":"c","name":"x","input":"y"}`, unsaid: "messages /input/1/type chat /input/1/type"},
			"a phase of an answer":  {text: `{"role":"assistant","content":"Hm","phase":"commentary"}`, unsaid: "messages /input/1/phase chat /input/1/phase"},
			"a role that is no one": {text: `{"role":"critic","content":"Hm"}`, unsaid: "messages /input/1/role chat /input/1/role"},
		},
		top: map[string]piece{
			"a cap":             {text: `"max_output_tokens":70`},
			"a temperature":     {text: `"temperature":0.7,"top_p":0.9`},
			"a hot temperature": {text: `"temperature":1.5`, unsaid: "messages /temperature"},
			"instructions":      {text: `"instructions":"Be brief"`},
			"a stream":          {text: `"stream":true,"stream_options":{"include_obfuscation":false}`},
			"obfuscation":       {text: `"stream":true,"stream_options":{"include_obfuscation":true}`, unsaid: "messages /stream_options/include_obfuscation chat /stream_options/include_obfuscation"},
			"an effort":         {text: `"reasoning":{"effort":"low"}`},
			"a summary":         {text: `"reasoning":{"effort":"low","summary":"auto"}`, unsaid: "messages /reasoning/summary chat /reasoning/summary"},
			"a verbosity":       {text: `"text":{"verbosity":"low"}`, unsaid: "messages /text/verbosity"},
			"a user":            {text: `"user":"ada"`},
			"a cache key":       {text: `"prompt_cache_key":"k"`, unsaid: "messages /prompt_cache_key"},
			"metadata":          {text: `"metadata":{"a":"b"}`, unsaid: "messages /metadata"},
			"what does nothing": {text: `"metadata":{},"store":true,"truncation":"disabled","include":[],"background":false,"top_logprobs":0,"reasoning":null`},
			"what it includes":  {text: `"include":["reasoning.encrypted_content"]`, unsaid: "messages /include chat /include"},
			"truncation":        {text: `"truncation":"auto"`, unsaid: "messages /truncation chat /truncation"},
			"most calls":        {text: `"max_tool_calls":3`, unsaid: "messages /max_tool_calls chat /max_tool_calls"},
			"an earlier answer": {text: `"previous_response_id":"r"`, unsaid: "messages /previous_response_id chat /previous_response_id"},
			"tools":             {text: `"tools":[{"type":"function","name":"ocr","description":"Reads","parameters":{"type":"object","properties":{"z":{},"a":{}}},"strict":true}],"tool_choice":"required","parallel_tool_calls":true`},
			"loose tools":       {text: `"tools":[{"type":"function","name":"ocr","parameters":{},"strict":false}],"tool_choice":"none","parallel_tool_calls":false`},
			"a chosen tool":     {text: `"tools":[{"type":"function","name":"ocr","parameters":{}}],"tool_choice":{"type":"function","name":"ocr"}`},
			"a search":          {text: `"tools":[{"type":"web_search"}]`, unsaid: "messages /tools/0/type chat /tools/0/type"},
			"a text":            {text: `"text":{"format":{"type":"text"}}`},
			"any JSON":          {text: `"text":{"format":{"type":"json_object"}}`, unsaid: "messages /text/format/type"},
			"a schema":          {text: `"text":{"format":{"type":"json_schema","name":"city","schema":{"type":"object"},"strict":true}}`},
			"a described one":   {text: `"text":{"format":{"type":"json_schema","name":"city","description":"d","schema":{"type":"object"}}}`, unsaid: "messages /text/format/description"},
		},
	},
	catalog.Messages: {
		list: "messages", before: `{"role":"user","content":"Look"}`, last: `{"role":"user","content":[{"type":"text","text":"Go on"}]}`,
		said: map[string]piece{
			"a user's parts":       {text: `{"role":"user","content":[{"type":"text","text":"What"},{"type":"text","text":"is it?"}]}`},
			"an image":             {text: `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"What?"}]}`},
			"an image elsewhere":   {text: `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}]}`},
			"a kept image":         {text: `{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}`, unsaid: "chat /messages/1/content/0/source/type responses /messages/1/content/0/source/type"},
			"a document":           {text: `{"role":"user","content":[{"type":"document","source":{"type":"text","data":"x"}}]}`, unsaid: "chat /messages/1/content/0/type responses /messages/1/content/0/type"},
			"what is cached":       {text: `{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`},
			"an answer":            {text: `{"role":"assistant","content":[{"type":"text","text":"Hello","citations":null}]}`},
			"an answer in parts":   {text: `{"role":"assistant","content":[{"type":"text","text":"Hello"},{"type":"text","text":" you"}]}`},
			"thoughts":             {text: `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"Hello"}]}`, unsaid: "chat /messages/1/content/0/type responses /messages/1/content/0/type"},
			"a call":               {text: messagesCalled(1) + "," + messagesResults(`"2 pages"`)},
			"calls at once":        {text: messagesCalled(2) + "," + messagesResults(`"one"`, `[{"type":"text","text":"two"},{"type":"text","text":"2"}]`)},
			"a result of nothing":  {text: messagesCalled(1) + "," + messagesResults(``)},
			"a result and words":   {text: messagesCalled(1) + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"one"},{"type":"text","text":"And now?"}]}`},
			"a text after a call":  {text: `{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"ocr","input":{}},{"type":"text","text":"I look"}]},` + messagesResults(`"one"`), unsaid: "chat /messages/1/content/1"},
			"an image as a result": {text: messagesCalled(1) + "," + messagesResults(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]`), unsaid: "chat /messages/2/content/0/content/0"},
			"a failed result":      {text: messagesCalled(1) + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"no","is_error":true}]}`},
			"a result that is ok":  {text: messagesCalled(1) + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"no","is_error":false}]}`},
			"a system in between":  {text: `{"role":"system","content":"Be brief"}`, unsaid: "chat /messages/1/role responses /messages/1/role"},
		},
		top: map[string]piece{
			"a cap":             {text: `"max_tokens":70`},
			"a temperature":     {text: `"temperature":0.7,"top_p":0.9`},
			"one of the top":    {text: `"top_k":3`, unsaid: "chat /top_k responses /top_k"},
			"stops":             {text: `"stop_sequences":["END","STOP"]`, unsaid: "responses /stop_sequences"},
			"a system":          {text: `"system":"Be brief"`},
			"a system in parts": {text: `"system":[{"type":"text","text":"Be"},{"type":"text","text":"brief"}]`},
			"a cached system":   {text: `"system":[{"type":"text","text":"Be","cache_control":{"type":"ephemeral"}}]`},
			"a cache":           {text: `"cache_control":{"type":"ephemeral"}`},
			"a stream":          {text: `"stream":true`},
			"an effort":         {text: `"output_config":{"effort":"medium"}`},
			"all effort":        {text: `"output_config":{"effort":"max"}`, unsaid: "chat /output_config/effort responses /output_config/effort"},
			"no thoughts":       {text: `"thinking":{"type":"disabled"}`},
			"thoughts":          {text: `"thinking":{"type":"enabled","budget_tokens":1024}`, unsaid: "chat /thinking/type responses /thinking/type"},
			"a user":            {text: `"metadata":{"user_id":"ada"}`},
			"tools":             {text: `"tools":[{"name":"ocr","description":"Reads","input_schema":{"type":"object","properties":{"z":{},"a":{}}}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`},
			"strict tools":      {text: `"tools":[{"type":"custom","name":"ocr","input_schema":{"type":"object"},"strict":true}],"tool_choice":{"type":"any","disable_parallel_tool_use":false}`},
			"a chosen tool":     {text: `"tools":[{"name":"ocr","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"ocr"}`},
			"no tool":           {text: `"tools":[{"name":"ocr","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}`},
			"cached tools":      {text: `"tools":[{"name":"ocr","input_schema":{},"cache_control":{"type":"ephemeral"}}]`},
			"a shell":           {text: `"tools":[{"type":"bash_20250124","name":"bash"}]`, unsaid: "chat /tools/0/type responses /tools/0/type"},
			"a schema":          {text: `"output_config":{"format":{"type":"json_schema","schema":{"title":"city","type":"object"}}}`},
			"a nameless schema": {text: `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`},
		},
	},
}

func chatTool(rest string) string {
	return `{"type":"function","function":{"name":"ocr","description":"Reads a page",` + rest + `}}`
}

func numbered(n int, text string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(text, "#", string(rune('1'+i))))
	}
	return strings.Join(all, ",")
}

func chatCalled(n int) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + numbered(n, `{"id":"call_#","type":"function","function":{"name":"ocr","arguments":"{\"page\":1}"}}`) + `]}`
}

func chatResult(n int, content string) string {
	return numbered(1, `{"role":"tool","tool_call_id":"call_`+string(rune('0'+n))+`","content":`+content+`}`)
}

func responsesCalled(n int) string {
	return `{"type":"function_call","id":"fc_1","status":"completed","call_id":"call_` + string(rune('0'+n)) + `","name":"ocr","arguments":"{\"page\":1}"}`
}

func responsesResult(n int, output string) string {
	return `{"type":"function_call_output","call_id":"call_` + string(rune('0'+n)) + `","output":` + output + `}`
}

func messagesCalled(n int) string {
	return `{"role":"assistant","content":[{"type":"text","text":"I look"},` + numbered(n, `{"type":"tool_use","id":"call_#","name":"ocr","input":{"page":#}}`) + `]}`
}

func messagesResults(contents ...string) string {
	var all []string
	for i, c := range contents {
		if c != "" {
			c = `,"content":` + c
		}
		all = append(all, `{"type":"tool_result","tool_use_id":"call_`+string(rune('1'+i))+`"`+c+`}`)
	}
	return `{"role":"user","content":[` + strings.Join(all, ",") + `]}`
}

// shape is a request, and the field at which each dialect that can't say it has to refuse it.
type shape struct {
	name, body string
	unsaid     map[catalog.Dialect]string
}

// shapes are the requests of a dialect: each piece alone, and each that can be said with others of its kind.
func shapes(d catalog.Dialect) (all []shape) {
	a := asks[d]
	add := func(name, top, said string, p piece) {
		s := shape{name: name, unsaid: map[catalog.Dialect]string{}}
		s.body = `{"model":"m",` + top + `"` + a.list + `":[` + a.before + "," + said + a.last + `]}`
		words := strings.Fields(p.unsaid)
		for i := 0; i < len(words); i += 2 {
			s.unsaid[catalog.Dialect(words[i])] = words[i+1]
		}
		all = append(all, s)
	}
	for name, p := range a.said {
		add(name, "", p.text+",", p)
	}
	for name, p := range a.top {
		add(name, p.text+",", "", p)
		for other, q := range a.said {
			if q.unsaid == "" && (len(name)+len(other))%3 == 0 {
				add(name+" and "+other, p.text+",", q.text+",", p)
			}
		}
	}
	return all
}
