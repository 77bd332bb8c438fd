package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/fault"
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

func TestABodyEarnsItsTimeByComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		began := time.Now()
		send, body := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, "/", send)
		handler := paced(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := conn.read.Sub(began); got != idleTime {
				t.Errorf("before the first byte it has %v", got)
			}
			b := make([]byte, 4<<10)
			_, _ = io.ReadFull(r.Body, b)
			time.Sleep(2 * time.Second)
			_, _ = r.Body.Read(b[:1])
			if got := conn.read.Sub(began); got != 32*time.Second {
				t.Errorf("after 2 s and 4 KiB it has until %v", got)
			}
			time.Sleep(20 * time.Second)
			_, _ = r.Body.Read(b[:1])
			if got := conn.read.Sub(began); got != idleTime+4*time.Second+time.Second/1024 {
				t.Errorf("a trickle has until %v", got)
			}
			_, _ = io.ReadAll(r.Body)
			if !conn.read.IsZero() {
				t.Error("the deadline outlives the body")
			}
		}))
		go func() {
			_, _ = body.Write(make([]byte, 4<<10+2))
			_ = body.Close()
		}()
		handler.ServeHTTP(conn, r)
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

func TestABodyIsBoundedAndItsErrorsAreFaults(t *testing.T) {
	cases := []struct {
		name   string
		source io.Reader
		kind   fault.Kind
		text   string
	}{
		{"at the limit", strings.NewReader("12345"), 0, "12345"},
		{"over the limit", strings.NewReader("123456"), fault.TooLarge, "12345"},
		{"too slow", io.MultiReader(strings.NewReader("12"), broken{os.ErrDeadlineExceeded}), fault.BadRequest, "12"},
		{"broken off", broken{io.ErrUnexpectedEOF}, fault.BadRequest, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := &body{source: c.source, limit: 5, left: 5}
			text, err := io.ReadAll(b)
			if string(text) != c.text || (err != nil) != (c.kind != 0) || err != nil && fault.KindOf(err) != c.kind {
				t.Errorf("%q, %v", text, err)
			}
			if _, again := b.Read(make([]byte, 1)); err != nil && !errors.Is(again, err) {
				t.Errorf("then %v", again)
			}
			if buried := errors.New("multipart: x"); err != nil && !errors.Is(b.or(buried), err) {
				t.Error("the body's own error is buried")
			}
		})
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
