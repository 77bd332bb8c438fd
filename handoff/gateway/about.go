package gateway

import (
	"bytes"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// About is what a provider says of its answer, beside its content and its usage.
type About struct {
	ID, Model string   // "" where it says nothing, or no plain name
	Reasons   []string // why it ended
}

// whole reads an answer that isn't streamed, or the object of one that stands in an event.
func (a *About) whole(d catalog.Dialect, body []byte) {
	a.names(body)
	switch d {
	case catalog.Chat:
		a.choices(member(body, "choices"))
	case catalog.Responses:
		a.reason(member(body, "status"))
	case catalog.Messages:
		a.reason(member(body, "stop_reason"))
	}
}

func (a *About) names(object []byte) {
	a.ID, a.Model = plainName(member(object, "id")), plainName(member(object, "model"))
}

// event reads an event of a stream: its first one, and those that say why it ended.
func (a *About) event(d catalog.Dialect, data []byte) {
	switch d {
	case catalog.Chat:
		if a.Model == "" {
			a.names(data)
		}
		if bytes.Contains(data, []byte(`"finish_reason":"`)) || bytes.Contains(data, []byte(`"finish_reason": "`)) {
			a.choices(member(data, "choices"))
		}
	case catalog.Responses:
		a.whole(d, member(data, "response"))
	case catalog.Messages:
		if message := member(data, "message"); message != nil {
			a.names(message)
		}
		a.reason(member(data, "delta", "stop_reason"))
	}
}

func (a *About) choices(list []byte) {
	for _, choice := range elements(list) {
		a.reason(member(choice, "finish_reason"))
	}
}

func (a *About) reason(value []byte) {
	if name := plainName(value); name != "" && len(a.Reasons) < maxChoices {
		a.Reasons = append(a.Reasons, name)
	}
}

// plainName returns a JSON text that is a name as providers give them, "" for any other.
func plainName(value []byte) string {
	const most = 128
	const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@-"
	if len(value) > most {
		return ""
	}
	name := textOf(value)
	if strings.Trim(name, signs) != "" {
		return ""
	}
	return name
}
