package mcp

import (
	"context"
	"errors"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio speaks with one client, line by line. It ends when the client's input has ended and
// all that it asked is answered, and with ctx: then what goes on is cancelled. So are runs that ask something when
// the input has ended.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, deaf := withHearing(context.WithValue(ctx, lifeKey{}, ctx))
	defer func() { deaf(); s.calls.leave(ctx) }()
	door := newLineDoor(out)
	dropped := func(what string) { s.opts.Logger.Warn("line of stdin passed over", "reason", what) }
	err := s.sdk.Run(ctx, &sdk.IOTransport{
		Reader: io.NopCloser(&patient{newLines(in, maxRequest, door.take, dropped), &door.asked, ctx, deaf}),
		Writer: door, MaxLineLength: -1,
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

// asked are the requests that have no answer yet: how many there are of an id.
type asked struct {
	mu      sync.Mutex
	ids     map[string]int
	changed chan struct{}
}

// add notes a request, or with -1 its answer.
func (a *asked) add(id []byte, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids[string(id)] += n; a.ids[string(id)] <= 0 {
		delete(a.ids, string(id))
	}
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
	ended func()          // is called at the end
}

func (p *patient) Read(into []byte) (int, error) {
	n, err := p.lines.Read(into)
	if err != nil {
		p.ended()
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
