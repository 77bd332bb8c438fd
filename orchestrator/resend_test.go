package orchestrator

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

func TestWhatIsSentAgainIsHeardOnceUntilItsAnswerWasDelivered(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(context.Context, *actor) error { return nil }, gate))
	id := p.submit()
	say := func(digest, text string) {
		t.Helper()
		if err := p.service.SayResent(t.Context(), id, digest, api.MessageEvent{ID: "m", Parts: []api.Part{{Text: text}}}); err != nil {
			t.Error(err)
		}
	}
	told := func(want bool) {
		t.Helper()
		if got, err := p.service.WasTold(t.Context(), id, "digest"); err != nil || got != want {
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
		if err := p.service.Delivered(t.Context(), id, digest); err != nil {
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

// A session that is begun for a message is another one each time that the message is sent.
func TestWhatIsSentAgainIsKnownInAnotherSession(t *testing.T) {
	t.Parallel()
	first, err := Submission{Unit: "u", Session: "a", Resend: "d"}.resendKey()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Submission{Unit: "u", Session: "b", Resend: "d"}.resendKey()
	if err != nil || again != first {
		t.Errorf("%v, then %v: %v", first, again, err)
	}
	if other, err := (Submission{Unit: "v", Resend: "d"}).resendKey(); err != nil || other.Value == first.Value {
		t.Errorf("another unit's is %v: %v", other, err)
	}
}
