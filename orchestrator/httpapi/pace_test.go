package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deadlines is a writer that remembers the deadlines of its connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = t
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = t
	return nil
}

func TestABodyHasAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		began := time.Now()
		handler := paced(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := conn.read.Sub(began); got != 30*time.Second {
				t.Errorf("before the first byte it has %v", got)
			}
			_, _ = io.ReadAll(r.Body)
			if !conn.read.IsZero() {
				t.Error("the deadline outlives the body")
			}
		}))
		handler.ServeHTTP(conn, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a body")))
	})
}

func TestEveryWriteHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		handler := paced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, write := range []func(){
				func() { w.WriteHeader(http.StatusOK) },
				func() { _, _ = io.WriteString(w, "x") },
				func() { _ = http.NewResponseController(w).Flush() },
			} {
				time.Sleep(time.Hour)
				write()
				if got := time.Until(conn.write); got != idleTime {
					t.Errorf("it has %v", got)
				}
			}
		}))
		handler.ServeHTTP(conn, httptest.NewRequest(http.MethodGet, "/", nil))
		if !conn.Flushed || !conn.read.IsZero() {
			t.Errorf("flushed %v, read deadline %v", conn.Flushed, conn.read)
		}
	})
}
