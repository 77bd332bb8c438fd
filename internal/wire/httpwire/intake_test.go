package httpwire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
)

// client is one whose body comes over a connection with deadlines.
type client struct {
	http.ResponseWriter
	net.Conn // the server's side
}

func (c client) Write(p []byte) (int, error) { return c.ResponseWriter.Write(p) }

// arrive makes a request whose body comes as pipe says.
func arrive(t *testing.T, pipe func(net.Conn)) (*Intake, *http.Request) {
	t.Helper()
	here, there := net.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		pipe(there)
		there.Close()
	}()
	in, r := Receive(client{httptest.NewRecorder(), here}, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", here))
	t.Cleanup(func() {
		here.Close()
		in.Done()
		<-sent
	})
	return in, r
}

// receive is arrive with a body that is there.
func receive(t *testing.T, body int, g *bytegate.Gate, holder string) (*Intake, *http.Request) {
	t.Helper()
	in, r := Receive(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(make([]byte, body))))
	in.Count(g, holder)
	return in, r
}

func TestABodyCountsFromWhenItComesUntilItsRequestIsOver(t *testing.T) {
	g := bytegate.New(4 * mib)
	in, r := receive(t, mib, g, "run")
	if g.Held() != 0 {
		t.Errorf("%d bytes are held for a declaration", g.Held())
	}
	_, err := io.CopyN(io.Discard, r.Body, mib/2)
	must(t, err)
	if held := g.Held(); held < mib/2 || held > mib {
		t.Errorf("%d bytes are held for a half", held)
	}
	_, err = io.ReadAll(r.Body)
	must(t, err)
	if g.Held() != mib || !in.Ended() {
		t.Errorf("%d bytes are held for the whole", g.Held())
	}
	in.Done()
	if g.Held() != 0 {
		t.Errorf("%d bytes are held after it", g.Held())
	}
	if _, err := r.Body.Read(make([]byte, 1)); err == nil {
		t.Error("a read goes on after the request")
	}
}

func TestABodyWithoutRoomIsRefused(t *testing.T) {
	g := bytegate.New(4 * mib)
	in, r := receive(t, 3*mib, g, "run")
	body, err := io.ReadAll(BodyOf(r, 4*mib))
	if !fault.Is(err, fault.Unavailable) || len(body) > 2*mib {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	in.Done()
	if g.Held() != 0 {
		t.Errorf("%d bytes are held after it", g.Held())
	}
}

func TestWhatIsStreamedIsNotHeld(t *testing.T) {
	g := bytegate.New(mib)
	in, r := receive(t, 8*mib, g, "run")
	defer in.Done()
	n, err := io.Copy(io.Discard, Streamed(r.Context(), r.Body))
	must(t, err)
	if n != 8*mib || g.Held() != 0 {
		t.Errorf("%d bytes came, %d are held", n, g.Held())
	}
}

func TestAReserveIsForTheBodyThatComes(t *testing.T) {
	g := bytegate.New(8 * mib)
	in, r := receive(t, mib, g, "run")
	must(t, Reserve(r.Context(), 2*mib))
	if g.Held() != 2*mib {
		t.Errorf("%d bytes are held before it comes", g.Held())
	}
	_, err := io.ReadAll(r.Body)
	must(t, err)
	if g.Held() != mib {
		t.Errorf("%d bytes are held when it has come", g.Held())
	}
	release, err := bytegate.Hold(r.Context(), mib)
	must(t, err)
	in.Done()
	if g.Held() != mib {
		t.Errorf("%d bytes are held for what else was taken", g.Held())
	}
	release()
	if err := Reserve(r.Context(), 8*mib); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it waits for what never comes: %v", err)
	}
}

// trickle sends parts of a body with pauses between them.
func trickle(part int, pause, all time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		for began := time.Now(); time.Since(began) < all; {
			if _, err := c.Write(make([]byte, part)); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

func TestABodyHasToComeAtAPace(t *testing.T) {
	for name, c := range map[string]struct {
		send     func(net.Conn)
		streamed bool
		cut      time.Duration // 0: it is taken
	}{
		"silence":                          {trickle(mib-4096, time.Hour, time.Hour), false, PaceTime},
		"a byte from time to time":         {trickle(1, 12*time.Second, time.Hour), false, PaceTime},
		"a MiB, and then a byte at a time": {func(c net.Conn) { _, _ = c.Write(make([]byte, mib)); trickle(1, time.Second, time.Hour)(c) }, false, PaceTime},
		"a MiB in 20 seconds each":         {trickle(mib/20, time.Second, 5*time.Minute), false, 0},
		"a slow one of less than a MiB":    {trickle(1024, time.Second, 29*time.Second), false, 0},
		"one of 2 KiB a second":            {trickle(2048, time.Second, time.Hour), false, PaceTime},
		"the same that is streamed":        {trickle(2048, time.Second, time.Hour), true, 0},
		"a streamed one that stops":        {trickle(mib, time.Hour, time.Hour), true, PaceTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, r := arrive(t, c.send)
				from := io.Reader(r.Body)
				if c.streamed {
					from = Streamed(r.Context(), from)
				}
				_, err := io.Copy(io.Discard, from)
				took := time.Since(began)
				if c.cut == 0 && err != nil || c.cut != 0 && (!errors.Is(err, os.ErrDeadlineExceeded) || took > c.cut+time.Second) {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// What a handler does between its reads, or before the first, is no time of the client's.
func TestAHandlerMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := arrive(t, trickle(1024, 0, time.Second))
		for range 10 {
			time.Sleep(time.Minute)
			if _, err := io.ReadFull(r.Body, make([]byte, 512)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
		}
	})
}
