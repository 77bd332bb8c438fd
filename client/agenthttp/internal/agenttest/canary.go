package agenttest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// Canary stands for what nobody may see: it is in inputs, outputs, events, headers and
// messages of the agent, and in the token.
const Canary = "PHI-canary-4711"

// Leaky are agents that put the canary everywhere.
var Leaky = map[string]http.HandlerFunc{
	"a refusal":             leak(422, "application/json", `{"detail":{"request_id":"r-1","ok":false,"outputs":{"x":"`+Canary+`"},"warnings":["`+Canary+`"]}}`),
	"an error":              leak(500, "application/json", `{"detail":"`+Canary+`"}`),
	"a validator":           leak(422, "application/json", `{"detail":[{"loc":["`+Canary+`"],"msg":"`+Canary+`","input":"`+Canary+`"}],"code":"`+Canary+`"}`),
	"types of its own":      leak(200, "application/json", `{"request_id":"`+Canary+`","artifacts":{"`+Canary+`":1},"warnings":"`+Canary+`","error":"`+Canary+`","usage":["`+Canary+`"],"grounding":{"`+Canary+`":1,"sources":"`+Canary+`"}}`),
	"a busy one":            leak(503, "text/plain", Canary),
	"a redirect":            leak(307, Canary, Canary, "Location", "https://"+Canary+".example.com/"+Canary),
	"a redirect to nowhere": leak(307, Canary, Canary, "Location", "://"+Canary),
	"no JSON":               leak(200, Canary, Canary+`{"a":`),
	"broken JSON":           leak(200, "application/json", `{"request_id":"`+Canary+`","`+Canary+`":`+Canary+`}`),
	"another id":            leak(200, "application/json", `{"request_id":"`+Canary+`","status":"`+Canary+`","outputs":{}}`),
	"no outputs":            leak(200, "application/json", `{"request_id":"r-1","status":"ok","outputs":"`+Canary+`"}`),
	"a failure":             leak(200, "application/json", `{"request_id":"r-1","status":"`+Canary+`","warnings":["`+Canary+`"]}`),
	"strange events":        leak(200, "text/event-stream", "event: "+Canary+"\nid: "+Canary+"\ndata: {\"x\":\""+Canary+"\"}\n\ndata: "+Canary+"\n\n"),
	"a cut stream":          leak(200, "text/event-stream", "event: final\ndata: "+Canary),
	"a strange end":         leak(200, "text/event-stream", "event: final\ndata: {\"request_id\":\""+Canary+"\",\"status\":\""+Canary+"\"}\n\n"),
	"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, Canary+" "+Canary+"\r\n\r\n")
			_ = conn.Close()
		}
	},
	"a broken header": func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+Canary+"\r\n\r\n")
			_ = conn.Close()
		}
	},
}

func leak(status int, media, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Everything is all that an error can show, its private causes as well.
func Everything(err error) string {
	if err == nil {
		return ""
	}
	var shown strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&shown, "%v %+v\n", e, fault.Public(e))
	}
	return shown.String()
}

// Hides fails the test if a text shows the canary.
func Hides(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), strings.ToLower(Canary)) {
			t.Errorf("it shows %s", text)
		}
	}
}
