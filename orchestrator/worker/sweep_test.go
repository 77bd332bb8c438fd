package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/agent-on-demand/aod/capsule/unit"
)

// sweptKind notes that it swept.
type sweptKind struct {
	Kind
	swept bool
}

func (k *sweptKind) SweepStrays(context.Context, func(string) bool) error {
	k.swept = true
	return nil
}

func (*sweptKind) PruneImages(context.Context, func() ([]*unit.Unit, error), bool) (int, error) {
	return 0, errors.New("not now")
}

// A run that goes on in a container which had waited for it lost that to the sweep of the next process: nobody had told
// yet whose it is.
func TestNothingIsSweptBeforeItIsKnownWhoseItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kind := &sweptKind{}
		w := &Worker{opts: Options{Kind: kind}, logger: slog.New(slog.DiscardHandler), held: map[string]*held{}}
		w.life = t.Context()
		h := newHeld(w, entry{Nonce: "n"})
		w.held["n"] = h
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.sweep(ctx)
		}()
		synctest.Wait()
		if kind.swept {
			t.Error("it swept")
		}
		h.known()
		synctest.Wait()
		if !kind.swept {
			t.Error("it didn't sweep")
		}
		stop()
		<-ended
	})
}
