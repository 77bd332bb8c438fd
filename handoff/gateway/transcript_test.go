package gateway

import (
	"errors"
	"strings"
	"testing"
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
