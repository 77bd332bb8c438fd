package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestUnitsRunOnEachOthersStreams(t *testing.T) {
	reads := func(s started) int {
		raw, err := os.ReadFile(s.stdin) // a pipe
		if err != nil {
			return 99
		}
		return s.prints(fmt.Sprintf(`{"got":%q}`, raw))
	}
	t.Run("from one to the next", func(t *testing.T) {
		b, _ := newUnit(t, reads)
		x := b.executionOf("r1", `{}`)
		var out bytes.Buffer
		in := &closer{Reader: strings.NewReader(`{"a":1}`)}
		x.Extra = Extra{Stream: &Stream{Stdin: in, Stdout: &out}}
		got := b.carriesOut(x)
		if want := `{"got":"{\"a\":1}"}`; string(got.Output) != want || out.String() != want || !in.closed {
			t.Errorf("%+v %+v, streamed %q, closed %v", got, got.Failure, out.String(), in.closed)
		}
	})
	t.Run("though it doesn't read", func(t *testing.T) {
		b, _ := newUnit(t, func(s started) int { return s.prints(`{}`) })
		x := b.executionOf("r1", `{}`)
		never, writer := io.Pipe()
		defer writer.Close()
		x.Extra = Extra{Stream: &Stream{Stdin: never}}
		if got := b.carriesOut(x); got.Outcome != api.Success {
			t.Errorf("%+v %+v", got, got.Failure)
		}
	})
	t.Run("until nobody reads what it prints", func(t *testing.T) {
		b, _ := newUnit(t, func(s started) int { return s.prints(`{}`) })
		x := b.executionOf("r1", `{}`)
		x.Extra = Extra{Stream: &Stream{Stdout: broken{}}}
		if got := b.carriesOut(x); got.Outcome != api.Success {
			t.Errorf("%+v %+v", got, got.Failure)
		}
	})
	t.Run("but not if it takes no JSON", func(t *testing.T) {
		b, f := newUnit(t, reads)
		f.card = func(out string) int {
			return started{out: out}.prints(strings.Replace(filterCard, `{"media_type": "text/*", "description": "any"}, {"media_type": "application/json", "description": "any"}`, `{"media_type": "image/png", "description": "any"}`, 1))
		}
		x := b.executionOf("r1", `{}`)
		x.Extra = Extra{Stream: &Stream{Stdin: io.NopCloser(strings.NewReader("{}"))}}
		_, err := x.Attempt(t.Context())
		if text := said(run.Fault(t.Context(), err)); err == nil || !strings.Contains(text, "application/json, which worker doesn't take") {
			t.Errorf("error %v: %s", err, text)
		}
		b.ends(x)
	})
}

// closer knows whether it is closed.
type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

// broken can be neither read nor written.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Read([]byte) (int, error)  { return 0, errBroken }
func (broken) Write([]byte) (int, error) { return 0, errBroken }
