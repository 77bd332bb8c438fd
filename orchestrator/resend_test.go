package orchestrator

import (
	"context"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/keys"
)

func TestWhatIsSentAgainIsHeardOnceUntilItsAnswerWasDelivered(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(context.Context, *actor) error { return nil }, gate))
	id := p.submit()
	say := func(digest, text string) {
		t.Helper()
		once, err := keys.Resent(digest, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := messagesOf(p.service).Say(trusted.Context(t), id, once, api.MessageEvent{ID: "m", Parts: []api.Part{{Text: text}}}, nil); err != nil {
			t.Error(err)
		}
	}
	told := func(want bool) {
		t.Helper()
		if got, err := p.service.Resends.WasTold(trusted.Context(t), id, "digest"); err != nil || got != want {
			t.Errorf("it was told: %v, want %v: %v", got, want, err)
		}
	}
	told(false)
	say("digest", "first")
	p.stop()
	p.start()
	told(true)
	say("digest", "first")
	say("another", "second")
	for _, digest := range []string{"dig", "digest"} { // the first is another one's beginning
		told(true)
		if err := p.service.Resends.Delivered(trusted.Context(t), id, digest); err != nil {
			t.Error(err)
		}
	}
	told(false)
	say("digest", "first")
	if diff := cmp.Diff([]string{"user first", "user second", "user first"}, p.toldOf(id, api.EventMessage)); diff != "" {
		t.Error(diff)
	}
	close(gate)
	p.await(id)
}
