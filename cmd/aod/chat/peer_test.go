package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func unitOf(input string) api.Unit {
	return api.Unit{Name: "clerk", InputSchema: json.RawMessage(input)}
}

func TestAUnitIsTalkedWithWhoseInputIsAMessage(t *testing.T) {
	t.Parallel()
	for input, can := range map[string]bool{
		`{"properties": {"message": {}}}`:                                               true,
		`{"properties": {"message": {}, "history": {}}, "required": ["message"]}`:       true,
		`{"properties": {"message": {}, "table": {}}, "required": ["message"]}`:         true,
		`{"properties": {"message": {}, "table": {}}, "required": ["message","table"]}`: false,
		`{"properties": {"question": {}}}`:                                              false,
		`{}`:                                                                            false, ``: false, `7`: false,
	} {
		if p, err := begin(unitOf(input)); (err == nil) != can || can && !strings.HasPrefix(p.context, "chat-") {
			t.Errorf("%s: %+v %v", input, p, err)
		}
	}
}

func TestOnlyTheNewestOfAConversationIsGivenAgain(t *testing.T) {
	t.Parallel()
	p, err := begin(unitOf(`{"properties": {"message": {}, "history": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	answer := func(text string) api.Record {
		raw, _ := json.Marshal(map[string]string{"text": text})
		return api.Record{Outcome: api.Success, Output: raw}
	}
	for range 500 {
		p.heard("m", answer("a"))
	}
	p.heard("lost", api.Record{Outcome: api.CapsuleError})
	p.heard("other", api.Record{Outcome: api.Success, Output: json.RawMessage(`{"n":1}`)})
	if n := len(p.history); n != maxSaid || p.history[n-1] != (said{"assistant", `{"n":1}`}) || p.history[n-3] != (said{"assistant", "a"}) {
		t.Errorf("%d: %+v", n, p.history[n-4:])
	}
	p.heard("long", answer(strings.Repeat("x", maxSaidBytes)))
	if len(p.history) != 2 || p.history[0].Content != "long" {
		t.Errorf("%d are left", len(p.history))
	}
	var input struct {
		Message string
		History []said
	}
	if s := p.submission("next"); json.Unmarshal(s.Input, &input) != nil || input.Message != "next" || len(input.History) != 2 || s.Unit != "clerk" {
		t.Errorf("%s", s.Input[:99])
	}
}
