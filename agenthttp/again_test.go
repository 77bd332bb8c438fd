package agenthttp

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// failing is an agent that fails so often, and then answers.
func failing(times int32, fail http.HandlerFunc) (http.HandlerFunc, *atomic.Int32) {
	var calls atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= times {
			fail(w, r)
			return
		}
		goodAgent().ServeHTTP(w, r)
	}, &calls
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestACallIsMadeAgainWhereThatIsSafe(t *testing.T) {
	cases := []struct {
		name       string
		fail       http.HandlerFunc
		repeatable bool
		calls      int32
	}{
		{"busy", status(429), false, 3},
		{"unavailable", status(503), false, 3},
		{"a gateway without its agent", status(502), false, 1},
		{"that gateway, of a task that may run twice", status(502), true, 3},
		{"a gateway that waited", status(504), false, 1},
		{"a broken connection", cut, false, 1},
		{"that connection, of a task that may run twice", cut, true, 3},
		{"an error of the agent", status(500), true, 1},
		{"a refusal", status(422), true, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h, calls := failing(2, c.fail)
			agent, _ := newClient(t, Options{URL: serve(t, h), Repeatable: c.repeatable})
			_, err := agent.Run(t.Context(), asked)
			if (err == nil) != (c.calls == 3) || calls.Load() != c.calls {
				t.Errorf("%d calls, %v", calls.Load(), err)
			}
		})
	}
	t.Run("the tries have an end", func(t *testing.T) {
		h, calls := failing(100, status(503))
		agent, pauses := newClient(t, Options{URL: serve(t, h), Tries: 3})
		if _, err := agent.Run(t.Context(), asked); !fault.Is(err, fault.Unavailable) || calls.Load() != 3 || len(*pauses) != 2 {
			t.Errorf("%d calls, %v, %v", calls.Load(), *pauses, err)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		agent, pauses := newClient(t, Options{URL: nobody(t)})
		if _, err := agent.Run(t.Context(), asked); !fault.Is(err, fault.Unavailable) || len(*pauses) != DefaultTries-1 {
			t.Errorf("%v, %v", *pauses, err)
		}
	})
	t.Run("never after the first event", func(t *testing.T) {
		h, calls := failing(1, func(w http.ResponseWriter, r *http.Request) {
			events(frame("started", map[string]any{}))(w, r)
			cut(w, r)
		})
		agent, _ := newClient(t, Options{URL: serve(t, h), Repeatable: true})
		if _, err := agent.Stream(t.Context(), asked, func(Event) {}); !fault.Is(err, fault.Unavailable) || calls.Load() != 1 {
			t.Errorf("%d calls, %v", calls.Load(), err)
		}
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 0, "soon": 0, "-1": 0} {
		h, _ := failing(1, status(503, "Retry-After", value))
		agent, pauses := newClient(t, Options{URL: serve(t, h)})
		if _, err := agent.Run(t.Context(), asked); err != nil || len(*pauses) != 1 || (*pauses)[0] < want || want > 0 && (*pauses)[0] != want {
			t.Errorf("%s: %v %v", value, *pauses, err)
		}
	}
	t.Run("a date", func(t *testing.T) {
		h := http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}
		if got := retryAfter(h); got < 59*time.Minute || got > time.Hour {
			t.Errorf("%s", got)
		}
	})
	t.Run("longer than anybody waits", func(t *testing.T) {
		h, calls := failing(1, status(429, "Retry-After", "60"))
		agent, _ := newClient(t, Options{URL: serve(t, h)})
		if _, err := agent.Run(t.Context(), asked); !fault.Is(err, fault.Busy) || calls.Load() != 1 {
			t.Errorf("%d calls, %v", calls.Load(), err)
		}
	})
	t.Run("longer than the call may take", func(t *testing.T) {
		h, calls := failing(1, status(429, "Retry-After", "20"))
		agent, _ := newClient(t, Options{URL: serve(t, h), Timeout: 10 * time.Second})
		if _, err := agent.Run(t.Context(), asked); !fault.Is(err, fault.Busy) || calls.Load() != 1 {
			t.Errorf("%d calls, %v", calls.Load(), err)
		}
	})
}
