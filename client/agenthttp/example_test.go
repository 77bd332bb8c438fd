package agenthttp

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func TestTheRemoteAgent(t *testing.T) {
	address := agenttest.StartExample(t, "../..")
	c := newClient(t, Options{URL: address, Timeout: time.Minute})
	text := strings.Repeat("one fish, two fish\n", 2500)
	request := Request{RequestID: "r-1", TaskType: agenttest.Task, Mode: "LIVE"}
	request.Inputs, _ = strictjson.Encode(map[string]string{"text": text})
	const want = `"words": 10000, "different_words": 3, "lines": 2500, "characters": 47500, "top": [{"word": "fish", "count": 5000}`
	t.Run("answers", func(t *testing.T) {
		got, err := c.Run(t.Context(), request)
		if err != nil || !got.OK || !strings.Contains(string(got.Outputs), want) {
			t.Errorf("%s %v", got.Outputs, err)
		}
	})
	t.Run("streams", func(t *testing.T) {
		var types []string
		got, err := c.Stream(t.Context(), request, func(e Event) { types = append(types, string(e.Type)) })
		if err != nil || !got.OK || !strings.Contains(string(got.Outputs), want) || strings.Join(types, " ") != "started"+strings.Repeat(" progress", 3) {
			t.Errorf("%s %v %v", got.Outputs, types, err)
		}
	})
	t.Run("refuses a task without a text when it is meant", func(t *testing.T) {
		request := Request{RequestID: "r-2", TaskType: agenttest.Task, Mode: "LIVE"}
		got, err := c.Run(t.Context(), request)
		if err == nil || got.RequestID != "r-2" || got.Code != "VALIDATION_ERROR" || got.Reason == "" {
			t.Errorf("%+v %v", got, err)
		}
	})
}
