package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/strictjson"
)

// canary stands for what nobody may see: it is in inputs, outputs, events, headers and
// messages of the agent, and in the token.
const canary = "PHI-canary-4711"

var secretive = Request{RequestID: "r-1", TaskType: knownTask, Inputs: Object(`{"patient":"` + canary + `"}`)}

// leaky are agents that put the canary everywhere.
var leaky = map[string]http.HandlerFunc{
	"a refusal":             leak(422, "application/json", `{"detail":{"request_id":"r-1","ok":false,"outputs":{"x":"`+canary+`"},"warnings":["`+canary+`"]}}`),
	"an error":              leak(500, "application/json", `{"detail":"`+canary+`"}`),
	"a busy one":            leak(503, "text/plain", canary),
	"a redirect":            leak(307, canary, canary, "Location", "https://"+canary+".example.com/"+canary),
	"a redirect to nowhere": leak(307, canary, canary, "Location", "://"+canary),
	"no JSON":               leak(200, canary, canary+`{"a":`),
	"broken JSON":           leak(200, "application/json", `{"request_id":"`+canary+`","`+canary+`":`+canary+`}`),
	"another id":            leak(200, "application/json", `{"request_id":"`+canary+`","status":"`+canary+`","outputs":{}}`),
	"no outputs":            leak(200, "application/json", `{"request_id":"r-1","status":"ok","outputs":"`+canary+`"}`),
	"a failure":             leak(200, "application/json", `{"request_id":"r-1","status":"`+canary+`","warnings":["`+canary+`"]}`),
	"strange events":        leak(200, "text/event-stream", "event: "+canary+"\nid: "+canary+"\ndata: {\"x\":\""+canary+"\"}\n\ndata: "+canary+"\n\n"),
	"a cut stream":          leak(200, "text/event-stream", "event: final\ndata: "+canary),
	"a strange end":         leak(200, "text/event-stream", "event: final\ndata: {\"request_id\":\""+canary+"\",\"status\":\""+canary+"\"}\n\n"),
	"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, canary+" "+canary+"\r\n\r\n")
			_ = conn.Close()
		}
	},
	"a broken header": func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+canary+"\r\n\r\n")
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

func TestNoValueIsShownInAnErrorOrALog(t *testing.T) {
	for name, h := range leaky {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			c := newClient(t, Options{
				URL: serve(t, h), Token: canary,
				Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			_, runErr := c.Run(t.Context(), secretive)
			_, streamErr := c.Stream(t.Context(), secretive, func(Event) {})
			if streamErr == nil {
				t.Error("the stream is taken")
			}
			hides(t, everything(runErr), everything(streamErr), log.String(), fmt.Sprintf("%+v", c.opts))
			if !strings.Contains(log.String(), `"request_id":"r-1","task_type":"WORD_STATS"`) {
				t.Errorf("the log says nothing: %s", &log)
			}
		})
	}
}

func TestNoValueIsShownInAReport(t *testing.T) {
	for name, h := range leaky {
		t.Run(name, func(t *testing.T) {
			report, err := Check(t.Context(), Target{URL: serve(t, h), TaskType: knownTask}, CheckOptions{
				Call: Options{Token: canary}, Inputs: secretive.Inputs,
			})
			raw, _ := json.Marshal(report)
			hides(t, everything(err), string(raw), table(t, report))
		})
	}
}

func TestNoValueOfARequestIsShown(t *testing.T) {
	for _, raw := range []string{
		canary, `{"request_id":` + canary + `}`, `{"request_id":["` + canary + `"],"mode":{"` + canary + `":1},"inputs":"` + canary + `"}`,
		`{"request_id":"` + strings.Repeat(canary, 100) + `"}`,
	} {
		_, err := ParseRequest([]byte(raw))
		hides(t, everything(err))
	}
	_, err := strictjson.Encode(Request{Inputs: Object(canary)})
	hides(t, everything(err))
	hides(t, everything((&Request{Inputs: Object(`["` + canary + `"]`)}).Check()))
	hides(t, everything(httpwire.NewEventWriter(io.Discard).Write(httpwire.Event{Name: canary + "\n", Data: canary})))
	_, err = New(Options{URL: "https://a", Token: canary + "\n"})
	hides(t, everything(err))
}

// everything is all that an error can show, its private causes as well.
func everything(err error) string {
	if err == nil {
		return ""
	}
	var shown strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&shown, "%v %+v\n", e, fault.Public(e))
	}
	return shown.String()
}

func hides(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), strings.ToLower(canary)) {
			t.Errorf("it shows %s", text)
		}
	}
}
