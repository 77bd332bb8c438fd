package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// toldBy is what an event tells in a line; "": nothing that people want to know.
func toldBy(e api.Event) string {
	data, err := e.Decode()
	if err != nil {
		return ""
	}
	switch d := data.(type) {
	case api.ProgressEvent:
		return progress(d)
	case api.BuildEvent:
		return "Builds its image: " + d.Name
	case api.Call:
		return called(d)
	case api.Transition:
		return entered(d)
	case api.ModelCall:
		return "Asks " + d.Model
	case api.QuestionEvent:
		return "Asks a person"
	}
	return ""
}

// called tells of a call: that it was made, or how it ended.
func called(c api.Call) string {
	if c.Outcome == "" {
		return "Calls " + c.Unit
	}
	return fmt.Sprintf("%s %s after %s", c.Unit, wordOf(stateOf(c.State, c.Outcome, false)), millis(c.TotalMS))
}

func entered(t api.Transition) string {
	if t.Reason == "" || t.Reason == string(t.State) || t.Reason == string(t.State.Status()) {
		return string(t.State.Status())
	}
	return string(t.State.Status()) + ": " + t.Reason
}

// waitingText says why a run waits, and at which place.
func waitingText(w api.Waiting) string {
	if w.Place > 0 {
		return fmt.Sprintf("Place %d in the queue: %s", w.Place, w.Message)
	}
	return "Waits: " + w.Message
}

func progress(e api.ProgressEvent) string {
	var told []string
	if e.Step != "" {
		told = append(told, e.Step)
	}
	if e.Percent != nil {
		told = append(told, fmt.Sprintf("%.0f %%", *e.Percent))
	}
	text := strings.Join(told, ", ")
	if e.Message == "" {
		return text
	}
	if text == "" {
		return e.Message
	}
	return text + " · " + e.Message
}
