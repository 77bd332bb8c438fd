// Package fuzzbound gives the fuzz tests bounds of time and memory for each input. Go's own
// fuzzing has none: an input that never ends looks like one that isn't interesting.
package fuzzbound

import (
	"fmt"
	"reflect"
	"runtime/metrics"
	"testing"
	"time"
)

const (
	// mostTime is far more than an input may take on a quiet machine.
	mostTime = 20 * time.Second
	// mostBytes bounds what is allocated for an input, all together.
	mostBytes = 1 << 30
	lookEvery = 100 * time.Millisecond
)

// Run is f.Fuzz, with bounds for each input. An input over them ends the process: that is how
// the fuzzer hears of it and keeps the input.
func Run(f *testing.F, target any) {
	f.Helper()
	call := reflect.ValueOf(target)
	f.Fuzz(reflect.MakeFunc(call.Type(), func(args []reflect.Value) []reflect.Value {
		defer watch(mostTime, mostBytes, func(why string) { panic(why) })()
		return call.Call(args)
	}).Interface())
}

// watch calls over, once, if more time passes or more is allocated before done is called.
func watch(most time.Duration, bytes uint64, over func(why string)) (done func()) {
	began, before, end, ended := time.Now(), allocated(), make(chan struct{}), make(chan struct{})
	exceeded := func() bool {
		took, more := time.Since(began), allocated()-before
		if took <= most && more <= bytes {
			return false
		}
		over(fmt.Sprintf("one input took %v and %d MiB", took, more>>20))
		return true
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(min(lookEvery, most))
		defer ticker.Stop()
		for {
			select {
			case <-end:
				exceeded()
				return
			case <-ticker.C:
				if exceeded() {
					return
				}
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// allocated is what the process has allocated since its start, freed or not.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
