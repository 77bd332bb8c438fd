package agenthttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestSizesAreBounded(t *testing.T) {
	endless := func(media, chunk string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			for {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}
	}
	limits := Limits{Answer: 10_000, Line: 1000, Event: 2000, Stream: 100_000}
	for chunk, want := range map[string]error{"x": httpwire.ErrLineTooLong, "data: xxxx\n": httpwire.ErrEventTooLarge, ": beat\n\n": httpwire.ErrStreamTooLarge} {
		c := newClient(t, Options{URL: agenttest.Serve(t, endless("text/event-stream", chunk)), Limits: limits})
		if _, err := c.Stream(t.Context(), asked, func(Event) {}); !errors.Is(err, want) || !fault.Is(err, fault.TooLarge) {
			t.Errorf("%q: %v", chunk, err)
		}
	}
	c := newClient(t, Options{URL: agenttest.Serve(t, endless("application/json", " ")), Limits: limits})
	if _, err := c.Run(t.Context(), asked); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
}

func TestTimeIsBounded(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection isn't seen
		events(agenttest.Frame("started", map[string]any{}))(w, r)
		<-r.Context().Done()
	}
	calls := map[string]func(*Client, context.Context) error{
		"run":    func(c *Client, ctx context.Context) error { _, err := c.Run(ctx, asked); return err },
		"stream": func(c *Client, ctx context.Context) error { _, err := c.Stream(ctx, asked, func(Event) {}); return err },
	}
	for name, call := range calls {
		t.Run(name+" in all", func(t *testing.T) {
			c := newClient(t, Options{URL: agenttest.Serve(t, http.HandlerFunc(hang)), Timeout: 50 * time.Millisecond})
			if err := call(c, t.Context()); !fault.Is(err, fault.Deadline) || !errors.Is(err, errTimeout) {
				t.Error(err)
			}
		})
		t.Run(name+" until its caller goes", func(t *testing.T) {
			c := newClient(t, Options{URL: agenttest.Serve(t, http.HandlerFunc(hang))})
			gone := errors.New("gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
			if err := call(c, ctx); !errors.Is(err, gone) {
				t.Error(err)
			}
		})
	}
	t.Run("a stream that is silent", func(t *testing.T) {
		c := newClient(t, Options{URL: agenttest.Serve(t, http.HandlerFunc(hang)), Silence: 50 * time.Millisecond})
		if err := calls["stream"](c, t.Context()); !fault.Is(err, fault.Deadline) || !errors.Is(err, errSilent) {
			t.Error(err)
		}
	})
}
