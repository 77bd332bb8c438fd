package gateway

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/gateway/catalog"
)

func TestAConversationIsKeptOnce(t *testing.T) {
	var c Conversations
	one := `{"model":"m","messages":[{"content":"a"},{"n":1.0}],"x":1}`
	two := `{"model":"m","messages":[{"content":"a"},{"n":1.0},{"content":"b"},"c"],"x":1}`
	other := `{"model":"m","messages":[{"content":"a"},{"n":1}]}`
	same := `{"input":[{"content":"a"},{"n":1.0}]}`
	var folded []Folded
	earlier := func(call int) (Folded, error) { return folded[call-1], nil }
	bodies := []string{one, two, other, same, `{"input":"text"}`, `{}`, two, `{"messages":["c",{"n":1.0}]}`}
	want := []Folded{
		{Body: []byte(one)},
		{Call: 1, Messages: 2, Body: []byte(`{"model":"m","messages":[{"content":"b"},"c"],"x":1}`)},
		{Call: 1, Messages: 1, Body: []byte(`{"model":"m","messages":[{"n":1}]}`)},
		{Call: 1, Messages: 2, Body: []byte(`{"input":[]}`)},
		{Body: []byte(`{"input":"text"}`)},
		{Body: []byte(`{}`)},
		{Call: 2, Messages: 4, Body: []byte(`{"model":"m","messages":[],"x":1}`)},
		{Body: []byte(`{"messages":["c",{"n":1.0}]}`)},
	}
	for i, body := range bodies {
		f := c.Fold(i+1, []byte(body))
		if f.Call != want[i].Call || f.Messages != want[i].Messages || string(f.Body) != string(want[i].Body) {
			t.Errorf("%d: %+v %s", i+1, f, f.Body)
		}
		folded = append(folded, f)
		got, err := Unfold(f, earlier)
		if err != nil || string(got) != body {
			t.Errorf("%d: %s %v", i+1, got, err)
		}
	}
	if _, err := Unfold(want[1], func(int) (Folded, error) { return Folded{Body: []byte(`{"messages":[1]}`)}, nil }); err == nil {
		t.Error("what is missing was made up")
	}
	gone := errors.New("gone")
	if _, err := Unfold(want[1], func(int) (Folded, error) { return want[1], nil }); err == nil {
		t.Error("a call comes before itself")
	}
	if _, err := Unfold(want[1], func(int) (Folded, error) { return Folded{}, gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// Each request of a conversation is one message longer than the one before it.
func TestALongConversationIsUnfoldedInOnePass(t *testing.T) {
	const turns = 20_000
	read, last := 0, Folded{Call: turns, Messages: turns, Body: []byte(`{"messages":[]}`)}
	got, err := Unfold(last, func(call int) (Folded, error) {
		read++
		return Folded{Call: call - 1, Messages: call - 1, Body: []byte(`{"messages":[1]}`)}, nil
	})
	if want := `{"messages":[` + strings.Repeat("1,", turns-1) + `1]}`; err != nil || string(got) != want || read != turns {
		t.Errorf("%d bytes of %d, %d calls read, %v", len(got), len(want), read, err)
	}
}

func TestTheInputBoundLearnsAndStaysAboveWhatWasSeen(t *testing.T) {
	q := func(body string) *request {
		t.Helper()
		q, err := readRequest(dialects[0], []byte(body))
		must(t, err)
		must(t, q.seal("m", catalog.Model{}, false))
		return q
	}
	var r ratios
	text := q(`{"model":"m","messages":[{"content":"` + strings.Repeat("word ", 1000) + `"}]}`)
	if got := r.inputBound("m", text); got != int64(len(text.body)) {
		t.Errorf("at first a byte is a token: %d", got)
	}
	r.saw("m", 5000, 1000)
	if got := r.inputBound("m", text); got < 1250 || got > 1450 {
		t.Errorf("%d", got)
	}
	r.saw("m", 5000, 2000)
	r.saw("m", 5000, 10)
	r.saw("m", 10, 10) // says nothing
	if got := r.inputBound("m", text); got < 2500 || got > 2700 {
		t.Errorf("%d", got)
	}
	if got := r.inputBound("other", text); got != int64(len(text.body)) {
		t.Errorf("%d", got)
	}
	image := q(`{"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 1<<20) + `"}}]}]}`)
	if got := r.inputBound("m", image); got < perImage || got > perImage+300 {
		t.Errorf("an image takes %d", got)
	}
}
