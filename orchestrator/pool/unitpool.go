package pool

import (
	"math"
	"slices"
	"time"
)

const (
	// rateWindow is the time over which a unit's calls are counted. refillTime is about how
	// long a new sandbox takes until it waits: the calls of that time need sandboxes before.
	rateWindow = 10 * time.Second
	refillTime = 500 * time.Millisecond

	// mostAdaptive bounds the sandboxes for a unit that asks for fewer.
	mostAdaptive = 8
	// guessedMemory is the memory in bytes of a sandbox whose unit has not run yet.
	guessedMemory = 64 << 20
	// fillPause is how long no sandbox of a unit is started after a failure.
	fillPause = 30 * time.Second
)

// unitPool has the sandboxes that wait for runs of one unit.
type unitPool struct {
	waiting []*Sandbox           // the oldest first
	coming  int                  // being started
	out     map[string]time.Time // those that may come back from their runs, by id
	fixed   int                  // how many the unit asks for

	asks   string // the content of which a program is known to ask for its run
	mute   string // the content of which one didn't, when it was started without
	memory int64  // the peak of its last run; 0: not known

	calls []time.Time // the latest
	pause time.Time   // nothing is started before

	hits, misses, refills, failures, discarded int64
}

// called remembers a call.
func (s *unitPool) called(now time.Time) {
	const remembered = 128
	if len(s.calls) == remembered {
		s.calls = slices.Delete(s.calls, 0, 1)
	}
	s.calls = append(s.calls, now)
}

// wanted returns how many sandboxes should wait: as many as the unit asks for, or as many as
// calls will probably come before new sandboxes could wait. One call alone counts for nothing,
// unless more runs wait in the queue.
func (s *unitPool) wanted(now time.Time, idle time.Duration, backlog int) int {
	recent, lately := 0, 0
	for _, at := range s.calls {
		if now.Sub(at) < idle {
			recent++
		}
		if now.Sub(at) < rateWindow {
			lately++
		}
	}
	if recent < 2 && backlog == 0 {
		return s.fixed
	}
	coming := math.Ceil(float64(lately) / rateWindow.Seconds() * refillTime.Seconds())
	return max(s.fixed, min(1+int(coming), mostAdaptive))
}

// lastCall returns the time of the unit's latest call.
func (s *unitPool) lastCall() time.Time {
	if len(s.calls) == 0 {
		return time.Time{}
	}
	return s.calls[len(s.calls)-1]
}

func (s *unitPool) bytes() int64 {
	each := s.memory
	if each == 0 {
		each = guessedMemory
	}
	return each
}

// stopLoadingAhead stops loading the program of a content ahead. It reports whether that was
// done before.
func (s *unitPool) stopLoadingAhead(key string) bool {
	if s.asks != key {
		return false
	}
	s.asks, s.mute = "", key
	return true
}

// spoil takes a waiting sandbox out at the next look, and loads the program of its content
// ahead no more.
func (s *unitPool) spoil(p *Sandbox) {
	p.spoiled.Store(true)
	s.discarded++
	s.stopLoadingAhead(p.Key)
}

func (s *unitPool) has(id string) bool {
	return slices.ContainsFunc(s.waiting, func(p *Sandbox) bool { return p.ID == id })
}

// trim takes out sandboxes that are dead, too old, of an older content, or without a program
// that could be loaded. If more are left than wanted, it takes out the oldest.
func (s *unitPool) trim(now time.Time, key string, wanted int, maxAge time.Duration) (gone []*Sandbox) {
	s.waiting = slices.DeleteFunc(s.waiting, func(p *Sandbox) bool {
		bad := !p.Ready() || now.Sub(p.born) > maxAge || key != "" && p.Key != key || !p.Loaded && s.asks == p.Key
		if bad {
			gone = append(gone, p)
		}
		return bad
	})
	for len(s.waiting) > wanted {
		gone = append(gone, s.waiting[0])
		s.waiting = s.waiting[1:]
	}
	return gone
}

// expect remembers a sandbox that may come back.
func (s *unitPool) expect(p *Sandbox, now time.Time) {
	if !p.Slot().Continues() {
		return
	}
	if s.out == nil {
		s.out = map[string]time.Time{}
	}
	s.out[p.ID] = now
}

// returning returns how many sandboxes may come back before a new one could wait.
func (s *unitPool) returning(now time.Time) int {
	for id, since := range s.out {
		if now.Sub(since) > refillTime {
			delete(s.out, id)
		}
	}
	return len(s.out)
}
