package agenthttp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

var secretive = Request{RequestID: "r-1", TaskType: agenttest.Task, Inputs: Object(`{"patient":"` + agenttest.Canary + `"}`)}

func TestNoValueIsShownInAnErrorOrALog(t *testing.T) {
	for name, h := range agenttest.Leaky {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			c := newClient(t, Options{
				URL: agenttest.Serve(t, h), Token: agenttest.Canary,
				Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			_, runErr := c.Run(t.Context(), secretive)
			_, streamErr := c.Stream(t.Context(), secretive, func(Event) {})
			if streamErr == nil {
				t.Error("the stream is taken")
			}
			agenttest.Hides(t, agenttest.Everything(runErr), agenttest.Everything(streamErr), log.String(), fmt.Sprintf("%+v", c.opts))
			if !strings.Contains(log.String(), `"request_id":"r-1","task_type":"WORD_STATS"`) {
				t.Errorf("the log says nothing: %s", &log)
			}
		})
	}
}

func TestNoValueOfARequestIsShown(t *testing.T) {
	for _, raw := range []string{
		agenttest.Canary, `{"request_id":` + agenttest.Canary + `}`, `{"request_id":["` + agenttest.Canary + `"],"mode":{"` + agenttest.Canary + `":1},"inputs":"` + agenttest.Canary + `"}`,
		`{"request_id":"` + strings.Repeat(agenttest.Canary, 100) + `"}`,
	} {
		_, err := ParseRequest([]byte(raw))
		agenttest.Hides(t, agenttest.Everything(err))
	}
	_, err := strictjson.Encode(Request{Inputs: Object(agenttest.Canary)})
	agenttest.Hides(t, agenttest.Everything(err))
	agenttest.Hides(t, agenttest.Everything((&Request{Inputs: Object(`["` + agenttest.Canary + `"]`)}).Check()))
	agenttest.Hides(t, agenttest.Everything(httpwire.NewEventWriter(io.Discard).Write(httpwire.Event{Name: agenttest.Canary + "\n", Data: agenttest.Canary})))
	_, err = New(Options{URL: "https://a", Token: agenttest.Canary + "\n"})
	agenttest.Hides(t, agenttest.Everything(err))
}
