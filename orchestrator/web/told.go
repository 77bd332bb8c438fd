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
		return "Calls " + d.Unit
	case api.Transition:
		return d.Reason
	case api.ModelCall:
		return "Asks " + d.Model
	case api.QuestionEvent:
		return "Asks a person"
	}
	return ""
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
