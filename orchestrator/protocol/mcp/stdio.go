package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio speaks with one client, line by line. It ends when the client's input has ended and
// all that it asked is answered, and with ctx: then what goes on is cancelled.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx = context.WithValue(ctx, lifeKey{}, ctx)
	asked := &asked{ids: map[string]bool{}, changed: make(chan struct{}, 1)}
	lines := newLines(in, maxRequest,
		func(what string) { s.opts.Logger.Warn("line of stdin passed over", "reason", what) })
	err := s.sdk.Run(ctx, &sdk.IOTransport{
		Reader: io.NopCloser(&patient{lines: lines, asked: asked, ctx: ctx}), Writer: &answered{out, asked},
		MaxLineLength: -1,
	})
	if ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// lifeKey is the key of the context of a client at stdio.
type lifeKey struct{}

// living returns a context that ends with a request, and with its client at stdio.
func living(ctx context.Context) (context.Context, func()) {
	life, ok := ctx.Value(lifeKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(life, cancel)
	return ctx, func() { stop(); cancel() }
}

// asked are the requests that have no answer yet.
type asked struct {
	mu      sync.Mutex
	ids     map[string]bool
	changed chan struct{}
}

// message is what tells requests from answers.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// note notes a message of the client, or an answer.
func (a *asked) note(raw []byte) {
	var m message
	if json.Unmarshal(raw, &m) != nil || len(m.ID) == 0 {
		return // a notification, or a batch
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Method != "" {
		a.ids[string(m.ID)] = true
		return
	}
	delete(a.ids, string(m.ID))
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func (a *asked) none() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids) == 0
}

// patient reads what a client asks. The end comes when all is answered: the SDK gives up what goes
// on when the input ends.
type patient struct {
	lines *lines
	asked *asked
	ctx   context.Context //nolint:containedctx // a Reader gets none
}

func (p *patient) Read(into []byte) (int, error) {
	begins := len(p.lines.rest) == 0
	n, err := p.lines.Read(into)
	if begins && n > 0 {
		p.asked.note(append(bytes.Clone(into[:n]), p.lines.rest...))
	}
	for err != nil && n == 0 && !p.asked.none() {
		select {
		case <-p.asked.changed:
		case <-p.ctx.Done():
			return 0, err
		}
	}
	return n, err
}

// answered writes messages to a client, each in one Write.
type answered struct {
	io.Writer
	asked *asked
}

func (a *answered) Write(p []byte) (int, error) {
	n, err := a.Writer.Write(p)
	a.asked.note(p)
	return n, err
}

// Close implements io.Closer: whoever gave the writer closes it.
func (*answered) Close() error { return nil }
