package registry

import (
	"context"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/capsule"
)

const (
	// watchPause is the time between two looks at the files. It is also how long they have to
	// rest before a change counts: editors write a file in several steps.
	watchPause = 100 * time.Millisecond
	// watchShare bounds the share of the time that is spent looking, as one part of so many.
	watchShare = 10
)

// Watcher waits for changes of a unit that is being edited: of all that would make a new
// version of it, and of other files that are named. It looks at the files in turn, which works
// on every file system.
type Watcher struct {
	dir    string
	own    watch
	beside watch // other files, absolute
	last   prints
	digest string // of the unit's content; "" if it can't be read
}

// prints are the fingerprints of all that is watched.
type prints struct{ own, beside fingerprint }

// NewWatcher watches a unit's directory and other files, from now on.
func NewWatcher(dir string, files ...string) *Watcher {
	w := &Watcher{dir: dir}
	for _, name := range files {
		if abs, err := filepath.Abs(name); err == nil {
			w.beside.names = append(w.beside.names, abs)
		}
	}
	w.read()
	return w
}

// read takes the files as they are now for what is known. The content is read after the
// fingerprint: a change in between is one that Await sees.
func (w *Watcher) read() {
	files, err := contentOf(&capsule.Capsule{Dir: w.dir})
	w.own, w.digest = watchOf(w.dir, files), ""
	w.last = w.look()
	if err != nil {
		return
	}
	if files, err = contentOf(&capsule.Capsule{Dir: w.dir}); err == nil {
		w.digest = files.digest
	}
}

func (w *Watcher) look() prints { return prints{w.own.fingerprint(w.dir), w.beside.fingerprint("")} }

// Await returns when something has changed since the last call, or since the Watcher was made,
// and rests again. The error is the cause of ctx's end.
func (w *Watcher) Await(ctx context.Context) error {
	before := w.last
	for {
		began := time.Now()
		now := w.look()
		if now == before && now != w.last && w.changed(now) {
			return nil
		}
		before = now
		pause := max(watchPause, watchShare*time.Since(began))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// changed takes over the newest state. It returns false where the unit's files were touched
// and have the contents that they had.
func (w *Watcher) changed(now prints) bool {
	digest, beside := w.digest, w.last.beside
	w.read()
	return digest == "" || w.digest != digest || now.beside != beside
}
