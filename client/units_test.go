package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestRunAU(t *testing.T) {
	var got, key string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, key = r.Method+" "+r.URL.RequestURI()+" "+string(raw), r.Header.Get("Idempotency-Key")
		w.Header().Set("AOD-Run", runID)
		_, _ = io.WriteString(w, "{ \"n\": 1.0 }\n")
	})
	call := AUCall{
		Unit: "ocr", Stdin: strings.NewReader("\x00\xff"), Prompt: "the table & more",
		Args: []string{"--lang", "deu", ""}, Timeout: time.Minute, Key: "k",
	}
	result, err := c.Units.RunAU(t.Context(), call)
	if err != nil || result.Run != runID || string(result.Output) != `{ "n": 1.0 }` {
		t.Fatalf("%+v %s, error %v", result, result.Output, err)
	}
	if want := "POST /v1/au/ocr?arg=--lang&arg=deu&arg=&prompt=the+table+%26+more&timeout=1m0s \x00\xff"; got != want || key != "k" {
		t.Errorf("sent %q with key %q, want %q", got, key, want)
	}
	if _, err := c.Units.RunAU(t.Context(), AUCall{Unit: "ocr"}); err != nil || got != "POST /v1/au/ocr " || len(key) < 20 {
		t.Errorf("sent %q with key %q, error %v", got, key, err)
	}
}

func TestRunsOfAUsThatGiveNothing(t *testing.T) {
	refusal := func(status int, code string) http.HandlerFunc {
		return answer(status, "application/problem+json", `{"title":"t","detail":"the reason","code":"`+code+`","run":"`+runID+`"}`)
	}
	cases := []struct {
		name   string
		answer http.HandlerFunc
		kind   fault.Kind
		text   string
		run    string
	}{
		{"an input that the unit doesn't take", refusal(422, "invalid_input"), fault.Input, "the reason", runID},
		{"a unit that failed", refusal(502, "unit_failed"), fault.Capsule, "the reason", runID},
		{"a run that was cancelled", refusal(499, "cancelled"), fault.Cancelled, "the reason", runID},
		{"no such unit", answer(404, "application/problem+json", `{"detail":"none","code":"not_found"}`), fault.NotFound, "none", ""},
		{"a proxy in between", answer(502, "text/html", "<html>"), fault.Unavailable, "without a reason", ""},
		{"an answer without a run", answer(200, "application/json", "{}"), fault.Unavailable, "can't be understood", ""},
		{"a server that says nothing", func(w http.ResponseWriter, _ *http.Request) { cut(w) }, fault.Unavailable, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			client := serve(t, func(w http.ResponseWriter, r *http.Request) { asked++; c.answer(w, r) })
			_, err := client.Units.RunAU(t.Context(), AUCall{Unit: "ocr", Stdin: strings.NewReader("x")})
			wantFault(t, err, c.kind, c.text)
			if got := RunOf(err); got != c.run || asked != 1 {
				t.Errorf("it is about run %q, asked %d times", got, asked)
			}
		})
	}
	if _, err := serve(t, refusal(500, "internal")).Units.RunAU(t.Context(), AUCall{Unit: "../runs"}); !fault.Is(err, fault.Input) {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}
