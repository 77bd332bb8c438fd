package store

import (
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// probeEvery is the least time between two tries to find out whether a trouble has passed.
const probeEvery = time.Second

// health is the worst that was seen of the database since it was opened.
type health struct {
	mu      sync.Mutex
	code    int   // SQLite's primary code; 0: all is well
	trouble error // the fault that was made of it
	probed  time.Time
}

// gravity orders the codes that count.
func gravity(code int) int {
	switch code {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return 3
	case sqlite3.SQLITE_IOERR:
		return 2
	case sqlite3.SQLITE_FULL:
		return 1
	}
	return 0
}

// note remembers a fault, unless a graver one is remembered.
func (h *health) note(code int, trouble error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gravity(code) > gravity(h.code) {
		h.code, h.trouble, h.probed = code, trouble, time.Now()
	}
}

// passed forgets a trouble that was seen to be over, unless a graver one came meanwhile.
func (h *health) passed(code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gravity(h.code) <= gravity(code) {
		h.code, h.trouble = 0, nil
	}
}

func (h *health) last() (code int, trouble error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.code, h.trouble
}

// turn reports whether the caller is the one to find out now whether the trouble has passed.
// Damage doesn't pass.
func (h *health) turn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.code == 0 || gravity(h.code) == gravity(sqlite3.SQLITE_CORRUPT) || time.Since(h.probed) < probeEvery {
		return false
	}
	h.probed = time.Now()
	return true
}
