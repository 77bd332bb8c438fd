package httpwire

import (
	"context"
	"iter"
)

// Item is a value of a sequence, or the error that ended it.
type Item[T any] struct {
	Value T
	Err   error
}

// Pump reads a sequence on a goroutine of its own, so that the reader of the channel may
// wait for other things too. It ends with the sequence or, without an item, with ctx. A
// panic of the sequence is its last item. wait returns when the goroutine has ended, which
// may be only after ctx has.
func Pump[T any](ctx context.Context, all iter.Seq2[T, error]) (items <-chan Item[T], wait func()) {
	out := make(chan Item[T])
	go func() {
		defer close(out)
		err := Catch(func() error { drain(ctx, all, out); return nil })
		if err != nil { // it would end the process: nobody catches what a goroutine of ours panics with
			hand(ctx, out, Item[T]{Err: err})
		}
	}()
	return out, func() {
		for range out {
			continue // it came too late
		}
	}
}

func drain[T any](ctx context.Context, all iter.Seq2[T, error], out chan<- Item[T]) {
	for value, err := range all {
		if ctx.Err() != nil || !hand(ctx, out, Item[T]{value, err}) {
			return
		}
	}
}

// hand reports whether there was somebody to take it.
func hand[T any](ctx context.Context, out chan<- Item[T], item Item[T]) bool {
	select {
	case out <- item:
		return true
	case <-ctx.Done():
		return false
	}
}
