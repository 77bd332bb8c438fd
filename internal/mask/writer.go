package mask

import (
	"bytes"
	"io"
)

// Writer masks a stream: what it writes doesn't depend on the pieces in which the stream comes.
// It holds back what may be a part of a secret, at most some 64 KiB more than the longest value.
type Writer struct {
	to   io.Writer
	mask *Masker
	held []byte
	next int // in held: nothing before it is looked at again but as what stood before
	done int // in held: before it all is written
	pem  int // bytes of a PEM block that were dropped; 0: there is none
	err  error
}

// NewWriter returns a Writer that writes masked text to another one. It must be closed.
func NewWriter(to io.Writer, m *Masker) *Writer { return &Writer{to: to, mask: m} }

// portion is how much is taken at once.
const portion = 32 << 10

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	for taken := 0; taken < len(p); {
		n := min(portion, len(p)-taken)
		w.held = append(w.held, p[taken:taken+n]...)
		if taken += n; len(w.held)-w.next > w.mask.ahead {
			w.scan(len(w.held) - w.mask.ahead)
		}
		if w.err != nil {
			return taken, w.err
		}
	}
	return len(p), nil
}

// Close writes what is held back. It doesn't close the writer below.
func (w *Writer) Close() error { return w.pause() }

func (w *Writer) pause() error {
	w.scan(len(w.held))
	w.flush(len(w.held))
	return w.err
}

// EndLine writes the line that ends with what was written before, but for what may begin a value
// of several lines: nothing else goes on behind the end of a line but a PEM block.
func (w *Writer) EndLine() error {
	end := len(w.held) - w.begun()
	w.scan(end)
	w.flush(end)
	return w.err
}

// openWords is how many words at the end of a text that goes on may be a part of a secret: a
// name, what stands between it and its value, and the value.
const openWords = 3

// EndWord writes what was written before but for the last words of the last line, and what may
// begin a value that was given.
func (w *Writer) EndWord() error {
	known := len(w.held) - w.begun()
	line := bytes.LastIndexByte(w.held, '\n') + 1
	w.scan(min(line, known))
	end := min(w.wordsEnd(line), known)
	w.scan(end)
	w.flush(end)
	return w.err
}

// wordsEnd returns where the last words of the last line begin; in a PEM block, where that line
// does.
func (w *Writer) wordsEnd(line int) int {
	if w.pem > 0 {
		return line
	}
	end := len(w.held)
	for range openWords {
		for end > w.done && w.held[end-1] == ' ' {
			end--
		}
		for end > w.done && w.held[end-1] > ' ' {
			end--
		}
	}
	return end
}

// begun returns how many bytes at the end of what is held may begin a value.
func (w *Writer) begun() int {
	for i := max(w.next, len(w.held)-w.mask.ahead); i < len(w.held); i++ {
		rest := w.held[i:]
		for _, v := range w.mask.values[rest[0]] {
			if len(v) > len(rest) && bytes.HasPrefix(v, rest) {
				return len(rest)
			}
		}
	}
	return 0
}

// scan looks at what is held up to a position, behind which enough is known.
func (w *Writer) scan(end int) {
	m := w.mask
	for w.next < end {
		if w.pem > 0 {
			w.skipPEM()
			continue
		}
		c := w.held[w.next]
		if class[c]&trigger == 0 && m.values[c] == nil {
			w.next++
			continue
		}
		if c == '-' && !m.only && bytes.HasPrefix(w.held[w.next:], []byte(pemBegin)) {
			w.replace(match{w.next, w.next + len(pemBegin)}, []byte(pemHidden))
			w.pem = 1
			continue
		}
		if found, ok := m.at(w.held, w.next, w.done); ok {
			w.replace(found, masked(w.held[found.start:found.end]))
			continue
		}
		w.next++
	}
	w.flush(w.next - maxBack)
	w.forget()
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
)

// skipPEM drops one byte of a PEM block, or its last line.
func (w *Writer) skipPEM() {
	rest := w.held[w.next:]
	n := 1
	if rest[0] == '-' && bytes.HasPrefix(rest, []byte(pemEnd)) {
		n = len(pemEnd)
		n += bytes.IndexAny(append(rest[n:min(len(rest), n+maxBack):min(len(rest), n+maxBack)], '\n'), "-\n")
		n = min(len(rest), run(rest, n, key, len("-----")))
		w.pem = maxPEM
	}
	w.next += n
	w.done = w.next
	if w.pem += n; w.pem >= maxPEM {
		w.pem = 0
	}
}

// replace writes what stands before a secret, and what stands for it.
func (w *Writer) replace(found match, by []byte) {
	w.flush(found.start)
	w.put(by)
	w.next, w.done = found.end, found.end
}

func (w *Writer) flush(end int) {
	if end > w.done {
		w.put(w.held[w.done:end])
		w.done = end
	}
}

func (w *Writer) put(p []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(p)
	}
}

// forget drops what is written and no longer looked back at.
func (w *Writer) forget() {
	drop := min(w.done, w.next) - maxBack
	if drop < portion {
		return
	}
	w.held = append(w.held[:0], w.held[drop:]...)
	w.next -= drop
	w.done -= drop
}
