package tunnel

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestUsage(t *testing.T) {
	t.Run("is what the far end measures", func(t *testing.T) {
		for _, want := range []Usage{{}, {1, 2}, {1 << 40, 1 << 33}, {math.MaxInt64, math.MaxInt64}} {
			r := newRig(t)
			r.measure = func() Usage { return want }
			r.up(t)
			if got, err := r.Usage(t.Context()); err != nil || got != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		}
	})
	t.Run("is measured anew for each question", func(t *testing.T) {
		r := newRig(t)
		n := int64(0)
		r.measure = func() Usage { n++; return Usage{Bytes: n} }
		r.up(t)
		for want := range int64(300) { // more than may wait to be accepted
			if got, err := r.Usage(t.Context()); err != nil || got.Bytes != want+1 {
				t.Fatalf("%+v, %v, want %d", got, err, want+1)
			}
		}
	})
	t.Run("is a far end's business that is there", func(t *testing.T) {
		if _, err := New(Options{}).Usage(t.Context()); !errors.Is(err, ErrDown) {
			t.Errorf("%v", err)
		}
		r := newRig(t)
		r.up(t)
		r.end(t)
		if _, err := r.Usage(t.Context()); !errors.Is(err, ErrDown) {
			t.Errorf("%v", err)
		}
	})
	t.Run("numbers that can't be are as large as can be", func(t *testing.T) {
		got := usageOf([usageSize]byte{255, 255, 255, 255, 255, 255, 255, 255, 128})
		if want := (Usage{math.MaxInt64, math.MaxInt64}); got != want {
			t.Errorf("%+v", got)
		}
		if got := usageOf([usageSize]byte((Usage{-1, -1}).answer())); got != (Usage{}) {
			t.Errorf("%+v", got)
		}
	})
}

// liar is a far end that speaks yamux and answers questions by a function.
func liar(t *testing.T, o Options, answer func(*yamux.Stream)) *Listener {
	t.Helper()
	near, far := net.Pipe()
	session, err := yamux.Client(far, config())
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for {
			stream, err := session.AcceptStream()
			if err != nil {
				return
			}
			answer(stream)
		}
	}()
	l := carried(t, o, near)
	t.Cleanup(func() {
		_ = session.Close()
		within(t, "the liar ends", told)
	})
	return l
}

// carried is a tunnel that carries conn until that or the test ends.
func carried(t *testing.T, o Options, conn io.ReadWriteCloser) *Listener {
	t.Helper()
	l := New(o)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.carry(ctx, conn)
	}()
	t.Cleanup(func() {
		stop()
		within(t, "carry returns", ended)
	})
	testkit.Eventually(t, "the tunnel is up", func() bool { return l.session.Load() != nil })
	return l
}

func TestUsageOfADishonestFarEnd(t *testing.T) {
	for name, answer := range map[string]func(*yamux.Stream){
		"that says nothing":               func(*yamux.Stream) {},
		"that hangs up":                   func(s *yamux.Stream) { _ = s.Close() },
		"that answers half and hangs up":  func(s *yamux.Stream) { _, _ = s.Write(make([]byte, usageSize/2)); _ = s.Close() },
		"that answers half and says more": func(s *yamux.Stream) { _, _ = s.Write(make([]byte, usageSize/2)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := liar(t, Options{Answer: 100 * time.Millisecond}, answer)
			for range 3 {
				if _, err := l.Usage(t.Context()); !errors.Is(err, ErrDown) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	t.Run("that answers too much is heard as far as an answer goes", func(t *testing.T) {
		l := liar(t, Options{Answer: patience}, func(s *yamux.Stream) { _, _ = s.Write(make([]byte, 100<<10)) })
		if got, err := l.Usage(t.Context()); err != nil || got != (Usage{}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("isn't waited for when the context ends", func(t *testing.T) {
		asked := make(chan struct{})
		l := liar(t, Options{Answer: 10 * patience}, func(*yamux.Stream) { close(asked) })
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() { _, err := l.Usage(ctx); answered <- err }()
		within(t, "the question arrives", asked)
		cancel()
		select {
		case err := <-answered:
			if !errors.Is(err, ErrDown) {
				t.Errorf("%v", err)
			}
		case <-time.After(patience):
			t.Error("the question goes on")
		}
	})
	t.Run("that stops amid a frame isn't waited for", func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		l := carried(t, Options{Frame: 200 * time.Millisecond}, near)
		go func() {
			_, _ = io.ReadFull(far, make([]byte, headerSize)) // the question's
			_, _ = far.Write([]byte{0, typeData, 0, 2 /* ACK */, 0, 0, 0, 2, 0, 0, 0, usageSize, 1, 2, 3})
			_, _ = io.Copy(io.Discard, far)
		}()
		if _, err := l.Usage(t.Context()); !errors.Is(err, ErrDown) {
			t.Errorf("%v", err)
		}
	})
}
