package enginetest

import (
	"io"
	"sync"

	"github.com/agent-on-demand/aod/runtime"
)

// fakeLog keeps all that a fake container writes, in its order.
type fakeLog struct {
	mu      sync.Mutex
	changed *sync.Cond
	pieces  []piece
	ended   bool
}

// piece is one write to one of the streams.
type piece struct {
	stderr bool
	text   string
}

func newFakeLog() *fakeLog {
	l := &fakeLog{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *fakeLog) writer(stderr bool) io.Writer { return logWriter{l, stderr} }

type logWriter struct {
	log    *fakeLog
	stderr bool
}

func (w logWriter) Write(p []byte) (int, error) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	w.log.pieces = append(w.log.pieces, piece{w.stderr, string(p)})
	w.log.changed.Broadcast()
	return len(p), nil
}

func (l *fakeLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.changed.Broadcast()
}

// follow returns everything from the beginning to the end of the container. Its
// goroutine ends there or with Close.
func (l *fakeLog) follow() *runtime.Streams {
	stdout, stdoutWriter := io.Pipe()
	stderr, stderrWriter := io.Pipe()
	out := &fakeOutput{stdoutWriter, stderrWriter}
	closed, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer out.close()
		for i := 0; ; i++ {
			p, more := l.piece(i, &closed)
			if !more {
				return
			}
			w := stdoutWriter
			if p.stderr {
				w = stderrWriter
			}
			_, _ = io.WriteString(w, p.text) // it fails after Close, which piece sees
		}
	}()
	stop := func() error {
		l.mu.Lock()
		closed = true
		l.changed.Broadcast()
		l.mu.Unlock()
		err := out.close()
		<-done
		return err
	}
	return &runtime.Streams{Stdout: stdout, Stderr: stderr, Close: stop}
}

// piece waits for the piece with a number; there is none when the container has ended
// before or nobody reads any more.
func (l *fakeLog) piece(i int, closed *bool) (p piece, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i >= len(l.pieces) && !l.ended && !*closed {
		l.changed.Wait()
	}
	if i >= len(l.pieces) || *closed {
		return piece{}, false
	}
	return l.pieces[i], true
}
