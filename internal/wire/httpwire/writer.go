package httpwire

import "net/http"

// Writer is an http.ResponseWriter that knows whether an answer has begun, and with which status.
// It is not safe for concurrent use.
type Writer struct {
	http.ResponseWriter
	status int // 0: it has not begun
}

// Watch returns a Writer around w.
func Watch(w http.ResponseWriter) *Writer { return &Writer{ResponseWriter: w} }

// Begun reports whether any part of the answer was sent: its status can't be changed then.
func (w *Writer) Begun() bool { return w.status != 0 }

// Status returns the status of the answer that has begun, or 0.
func (w *Writer) Status() int { return w.status }

// WriteHeader is http.ResponseWriter's. Informational answers (1xx) begin nothing.
func (w *Writer) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// begin notes the status that counts: the first one.
func (w *Writer) begin(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *Writer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// FlushError is http.ResponseController's. It sends the header.
func (w *Writer) FlushError() error {
	w.begin(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is http.Flusher's. An error is the next write's too.
func (w *Writer) Flush() { _ = w.FlushError() }

// Unwrap is http.ResponseController's.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
