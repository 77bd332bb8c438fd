package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// vendor counts as vendors say that they do, and where they say less, the most that can be. It
// shares no code with the gateway's bound.
type vendor struct {
	kind   catalog.Kind
	window int64

	mu   sync.Mutex
	bill ledger.Amount
}

// vendorRequest is what a vendor reads of a request.
type vendorRequest struct {
	Messages, System, Tools, Input, Instructions any
	Prediction                                   *struct{ Content string }
	ResponseFormat                               any   `json:"response_format"`
	MaxTokens                                    int64 `json:"max_tokens"`
	MaxCompletion                                int64 `json:"max_completion_tokens"`
	MaxOutput                                    int64 `json:"max_output_tokens"`
	N                                            int64
}

// RoundTrip implements http.RoundTripper.
func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var q vendorRequest
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	in, fits := v.reads(q, strings.HasSuffix(r.URL.Path, "/embeddings"))
	if !fits {
		return answerOf(http.StatusBadRequest, `{"error":{"type":"invalid_request_error","message":"it is too long"}}`), nil
	}
	out := max(q.MaxTokens, q.MaxCompletion, q.MaxOutput) * max(q.N, 1)
	if q.Prediction != nil {
		out += int64(len(q.Prediction.Content)) * max(q.N, 1) // nothing of it came
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bill = v.bill.Plus(ledger.Amount{Tokens: in + out, Cost: in*1000 + out*3000})
	return answerOf(http.StatusOK, fmt.Sprintf(`{"choices":[{}],"data":[{}],"content":[],"output":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"input_tokens":%d,"output_tokens":%d}}`, in, out, in, out)), nil
}

func answerOf(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// reads returns how many tokens a request is, and whether the model can read so many.
func (v *vendor) reads(q vendorRequest, embeddings bool) (tokens int64, fits bool) {
	if texts, many := q.Input.([]any); embeddings && many {
		for _, text := range texts {
			one := v.content(text)
			if one > v.window {
				return 0, false
			}
			tokens += one
		}
		return tokens, true
	}
	tokens = 20 + v.content(q.System) + v.content(q.Instructions) + v.content(q.Messages) + v.content(q.Input) + inJSON(q.ResponseFormat)
	if q.Tools != nil {
		tokens += 530 + inJSON(q.Tools)
	}
	return tokens, tokens <= v.window
}

func (v *vendor) content(c any) (tokens int64) {
	switch c := c.(type) {
	case string:
		return inText(c)
	case []any:
		for _, one := range c {
			tokens += v.content(one)
		}
	case map[string]any:
		return v.part(c)
	}
	return tokens
}

// part counts a message, or a part of one.
func (v *vendor) part(p map[string]any) int64 {
	switch p["type"] {
	case "image_url", "input_image":
		if nested, ok := p["image_url"].(map[string]any); ok {
			return v.image(nested["url"])
		}
		return v.image(p["image_url"])
	case "image":
		source, _ := p["source"].(map[string]any)
		return v.image(source["data"])
	case "document":
		source, _ := p["source"].(map[string]any)
		if source["type"] == "text" {
			return v.content(source["data"])
		}
		return 7784 * 3 // a page is up to 3,000 tokens of text, and an image
	case "input_audio", "file", "input_file":
		return 9000
	case "text", "input_text", "output_text":
		return v.content(p["text"])
	case "tool_result":
		return 4 + v.content(p["content"])
	case "function_call_output":
		return 4 + v.content(p["output"])
	case nil, "message":
		return 4 + v.content(p["role"]) + v.content(p["content"]) + inJSON(p["tool_calls"])
	}
	return inJSON(p)
}

// image counts a picture by its size, which stands in place of its data.
func (v *vendor) image(data any) int64 {
	text, _ := data.(string)
	if _, after, found := strings.Cut(text, ";base64,"); found {
		text = after
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	var w, h int64
	if _, scanned := fmt.Sscanf(string(raw), "%dx%d", &w, &h); err != nil || scanned != nil {
		return int64(len(text)) // a server that takes it for a text
	}
	if v.kind == catalog.Anthropic {
		return min((w+27)/28*((h+27)/28), 4784)
	}
	return (w + 31) / 32 * ((h + 31) / 32) * 6 / 5
}

// picture is the data of one.
func picture(w, h, size int) string {
	head := fmt.Sprintf("%dx%d ", w, h)
	return base64.StdEncoding.EncodeToString([]byte(head + strings.Repeat("x", max(size-len(head), 0))))
}

// inText counts many blanks as few tokens, and every other byte as one.
func inText(text string) (tokens int64) {
	const blanks = 80
	for len(text) > 0 {
		n := len(text) - len(strings.TrimLeft(text[:min(len(text), blanks)], " "))
		n -= max(len(text)-blanks, 0)
		if n < 2 {
			n = 1
		}
		tokens, text = tokens+1, text[n:]
	}
	return tokens
}

func inJSON(v any) int64 {
	if v == nil {
		return 0
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // it was decoded
	return inText(strings.TrimSpace(b.String()))
}
