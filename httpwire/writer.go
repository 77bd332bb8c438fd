package httpwire

import "net/http"

// Writer is an http.ResponseWriter that knows whether an answer has begun. It is not safe
// for concurrent use.
type Writer struct {
	http.ResponseWriter
	begun bool
}

// Watch returns a Writer around w.
func Watch(w http.ResponseWriter) *Writer { return &Writer{ResponseWriter: w} }

// Begun reports whether any part of the answer was sent: its status can't be changed then.
func (w *Writer) Begun() bool { return w.begun }

// WriteHeader is http.ResponseWriter's. Informational answers (1xx) begin nothing.
func (w *Writer) WriteHeader(status int) {
	w.begun = w.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *Writer) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// FlushError is http.ResponseController's. It sends the header.
func (w *Writer) FlushError() error {
	w.begun = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is http.Flusher's. An error is the next write's too.
func (w *Writer) Flush() { _ = w.FlushError() }

// Unwrap is http.ResponseController's.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
