//go:build linux

package pid1

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// spareThreads are made before the program starts, beyond those that the Go runtime
// has by then. With one processor at most four threads are ever out of the pool: one
// blocked in wait4, one waiting for a signal, one in the relay's epoll, one running. The
// main thread and one that the runtime has made for signals are in the pool as well. But
// a thread that was just used is on its way back to the pool for as long as a busy machine
// doesn't let it run: so some are to spare.
const spareThreads = 6

// watchThreads are for the program's watcher: the thread that has its filter, and the one that
// waits for what the kernel tells. runtime.Spec adds them to the limit as well.
const watchThreads = 2

// prepare makes the Go runtime fit for a container whose process limit is reached and
// whose memory is used up.
//
// When all its threads are blocked the runtime makes another, and when the kernel
// refuses that (a fork bomb sits at the limit) the whole process dies. So all threads
// that this program can need are made now: the runtime never gives one back. One
// processor bounds how many can be wanted; no garbage collection means that no worker
// is ever started, which is fine because nothing allocates once the program runs.
//
// A memory limit or a collector setting in the image's environment (GOMEMLIMIT, GOGC)
// is overridden: it is meant for the program, not for us.
func prepare(watch bool) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(math.MaxInt64)
	threads := spareThreads
	if watch {
		threads += watchThreads
	}
	makeThreads(threads)
}

// makeThreads leaves n idle threads behind: each goroutine keeps a thread for itself
// until all n have one.
func makeThreads(n int) {
	var locked, done sync.WaitGroup
	locked.Add(n)
	done.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			locked.Done()
			locked.Wait()
			runtime.UnlockOSThread()
			done.Done()
		}()
	}
	done.Wait()
}
