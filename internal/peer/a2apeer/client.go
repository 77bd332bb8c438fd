package a2apeer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Options name an agent and how to ask it. URL is what /.well-known/agent-card.json lies below, or the address of the
// card itself if it ends in .json.
type Options = peer.Options

// Client asks one agent. It makes each request once: retries are its caller's business. It is safe for concurrent use.
type Client struct{ far *peer.Client }

// New returns a client that has not connected yet. The error is an Input fault for an invalid address or token.
func New(opts Options) (*Client, error) {
	far, err := peer.New(opts)
	if err != nil {
		return nil, err
	}
	far.HTTP.Transport = guard{far.HTTP.Transport}
	return &Client{far}, nil
}

// ErrElsewhere is in the chain of an error of File about an address at another origin, which nobody was asked for.
var ErrElsewhere = errors.New("the file lies at another origin than the agent's")

// File writes the file at an address of the agent's to w. More than most bytes are a TooLarge fault. Its other errors
// are those of Send, and those of w.
func (c *Client) File(ctx context.Context, address string, w io.Writer, most int64) error {
	at, err := url.Parse(address)
	if err != nil || at.User != nil || !peer.SameOrigin(at, c.far.Base) {
		return fault.Wrap(fault.Unsupported, ErrElsewhere, "a file is not fetched")
	}
	ctx, silence := httpwire.WatchSilence(ctx, silenceTime)
	defer silence.Stop(nil)
	x := &exchange{form: anything}
	req, err := http.NewRequestWithContext(x.begin(ctx), http.MethodGet, at.String(), nil)
	if err != nil {
		return fault.Wrap(fault.Unsupported, ErrElsewhere, "a file is not fetched")
	}
	response, err := c.far.HTTP.Do(req)
	if err != nil {
		return explain(ctx, x, err)
	}
	defer func() { _ = response.Body.Close() }() // read as far as it is wanted
	if response.StatusCode != http.StatusOK {
		return refusedBy(response.StatusCode)
	}
	n, err := io.Copy(w, io.LimitReader(silence.Reader(response.Body, silenceTime), most+1))
	switch {
	case x.lost != nil || ctx.Err() != nil:
		return explain(ctx, x, err)
	case err != nil:
		return err
	case n > most:
		return fault.New(fault.TooLarge, "a file of the agent's has more than is taken: %d bytes are left of the limit",
			most)
	}
	return nil
}

// Post sends a body as it is to an interface of JSON-RPC, and returns what comes back. Errors are those of Agent.Send;
// an answer with any status is none.
func (c *Client) Post(ctx context.Context, i Interface, body []byte) (status int, answer []byte, err error) {
	limited, stop := context.WithTimeoutCause(ctx, CallTime, errTimeout)
	defer stop()
	x := &exchange{form: document, most: MaxAnswer}
	req, err := http.NewRequestWithContext(x.begin(limited), http.MethodPost, i.URL, bytes.NewReader(body))
	if err != nil {
		return 0, nil, broken(RuleInterfaces, "the address of an interface can't be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", string(i.Version))
	response, err := c.far.HTTP.Do(req)
	if err != nil {
		return 0, nil, explain(limited, x, err)
	}
	defer func() { _ = response.Body.Close() }() // read as far as it is wanted
	answer, err = io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, explain(limited, x, err)
	}
	return x.status, answer, nil
}
