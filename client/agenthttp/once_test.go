package agenthttp

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
	}
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestACallIsMadeOnce(t *testing.T) {
	cases := []struct {
		name string
		fail http.HandlerFunc
		kind fault.Kind
	}{
		{"busy", status(429), fault.Busy},
		{"unavailable", status(503), fault.Unavailable},
		{"a gateway without its agent", status(502), fault.Unavailable},
		{"a gateway that waited", status(504), fault.Deadline},
		{"a broken connection", cut, fault.Unavailable},
		{"an error of the agent", status(500), fault.Unavailable},
		{"a refusal", status(422), fault.Input},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int32
			agent := newClient(t, Options{URL: agenttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				c.fail(w, r)
			}))})
			if _, err := agent.Run(t.Context(), asked); !fault.Is(err, c.kind) || calls.Load() != 1 {
				t.Errorf("%d calls, %v", calls.Load(), err)
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		if _, err := newClient(t, Options{URL: "http://" + testkit.Nobody(t)}).Run(t.Context(), asked); !fault.Is(err, fault.Unavailable) {
			t.Error(err)
		}
	})
}
