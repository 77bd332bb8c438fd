package conversation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

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
		if p, err := With("clerk", json.RawMessage(input), ""); (err == nil) != can || can && !strings.HasPrefix(p.Name, "chat-") {
			t.Errorf("%s: %+v %v", input, p, err)
		}
	}
}

func TestOnlyTheNewestOfAConversationIsGivenAgain(t *testing.T) {
	t.Parallel()
	p, err := With("clerk", json.RawMessage(`{"properties": {"message": {}, "history": {}}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	answer := func(text string) api.Record {
		raw, _ := json.Marshal(map[string]string{"text": text})
		return api.Record{Outcome: api.Success, Output: raw}
	}
	for range 500 {
		p.Hear("m", answer("a"))
	}
	p.Hear("lost", api.Record{Outcome: api.CapsuleError})
	p.Hear("other", api.Record{Outcome: api.Success, Output: json.RawMessage(`{"n":1}`)})
	if n := len(p.History); n != maxSaid || p.History[n-1] != (Said{"assistant", `{"n":1}`}) || p.History[n-3] != (Said{"assistant", "a"}) {
		t.Errorf("%d: %+v", n, p.History[n-4:])
	}
	p.Hear("long", answer(strings.Repeat("x", maxSaidBytes)))
	if len(p.History) != 2 || p.History[0].Content != "long" {
		t.Errorf("%d are left", len(p.History))
	}
	var input struct {
		Message string
		History []Said
	}
	if raw := p.Input("next"); json.Unmarshal(raw, &input) != nil || input.Message != "next" || len(input.History) != 2 {
		t.Errorf("%s", raw[:99])
	}
}
