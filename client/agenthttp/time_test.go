package agenthttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
)

// piped is a stream that a test writes as it likes; the request's end cuts it.
type piped func(w io.Writer)

func (p piped) RoundTrip(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(context.Cause(r.Context())) })
	go func() {
		p(w)
		_ = w.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
}

// inTime streams with a clock that goes on when all wait, and says how long it took.
func inTime(t *testing.T, silent time.Duration, w piped) (response Response, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{URL: "https://agent.example.com", Silence: silent, HTTP: &http.Client{Transport: w}})
		began := time.Now()
		response, err = c.Stream(t.Context(), asked, func(Event) {})
		took = time.Since(began)
		time.Sleep(time.Hour) // of the bubble: until the agent has seen that nobody reads
	})
	return response, took, err
}

func write(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

func TestStreamsInTime(t *testing.T) {
	good := agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, nil))
	t.Run("comments keep a stream alive", func(t *testing.T) {
		got, took, err := inTime(t, time.Minute, func(w io.Writer) {
			for range 5 {
				time.Sleep(45 * time.Second)
				write(w, ": beat\n\n")
			}
			write(w, good)
		})
		if err != nil || !got.OK || took != 225*time.Second {
			t.Errorf("%+v %s %v", got, took, err)
		}
	})
	t.Run("silence ends it", func(t *testing.T) {
		_, took, err := inTime(t, time.Minute, func(w io.Writer) {
			write(w, agenttest.Frame("started", map[string]any{}))
			time.Sleep(2 * time.Minute)
			write(w, good)
		})
		if !fault.Is(err, fault.Deadline) || !errors.Is(err, errSilent) || took != time.Minute {
			t.Errorf("%s %v", took, err)
		}
	})
	t.Run("the time for all is over, whatever comes", func(t *testing.T) {
		_, took, err := inTime(t, time.Minute, func(w io.Writer) {
			for range 30 {
				time.Sleep(30 * time.Second)
				write(w, ": beat\n\n")
			}
		})
		if !errors.Is(err, errTimeout) || took != DefaultTimeout {
			t.Errorf("%s %v", took, err)
		}
	})
	t.Run("one that stays open after its terminal event is not waited for", func(t *testing.T) {
		got, took, err := inTime(t, time.Minute, func(w io.Writer) {
			write(w, good)
			for range 100 {
				time.Sleep(time.Second)
				write(w, ": beat\n\n")
			}
		})
		if err != nil || !got.OK || took != lingerTime {
			t.Errorf("%+v %s %v", got, took, err)
		}
	})
	t.Run("nor is its silence then an error", func(t *testing.T) {
		got, took, err := inTime(t, lingerTime/5, func(w io.Writer) {
			write(w, good)
			time.Sleep(lingerTime / 10)
			write(w, ": beat\n\n")
			time.Sleep(time.Minute)
		})
		if err != nil || !got.OK || took != lingerTime {
			t.Errorf("%+v %s %v", got, took, err)
		}
	})
	t.Run("an event that follows soon is seen", func(t *testing.T) {
		_, _, err := inTime(t, time.Minute, func(w io.Writer) {
			write(w, good)
			time.Sleep(lingerTime / 2)
			write(w, agenttest.Frame("progress", map[string]any{}))
		})
		wantViolation(t, err, "stream-terminal-last")
	})
}
