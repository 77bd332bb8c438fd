package a2a

import "net/http"

// answer writes nothing before the handler has something to tell: until then the SDK may have
// sent the header of a stream that is none, or an error in words that aren't ours. What it writes
// of errors is dropped.
type answer struct {
	http.ResponseWriter
	call   *call
	status int  // that was held back
	begun  bool // something was sent
	broken bool // the client did not take all
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.begun {
		return
	}
	a.status = status
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		if !a.call.isReady() {
			return len(p), nil
		}
		a.begun = true
		a.ResponseWriter.WriteHeader(http.StatusOK)
	}
	n, err := a.ResponseWriter.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	if a.begun && http.NewResponseController(a.ResponseWriter).Flush() != nil {
		a.broken = true
	}
}
