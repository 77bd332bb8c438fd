package a2apeer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// ErrElsewhere is in the chain of an error of File about an address at another origin, which nobody was asked for.
var ErrElsewhere = errors.New("the file lies at another origin than the agent's")

// File writes the file at an address of the agent's to w. More than most bytes are a TooLarge fault. Its other errors
// are those of Send, and those of w.
func (c *Client) File(ctx context.Context, address string, w io.Writer, most int64) error {
	at, err := url.Parse(address)
	if err != nil || at.User != nil || !agenthttp.SameOrigin(at, c.base) {
		return fault.Wrap(fault.Unsupported, ErrElsewhere, "a file is not fetched")
	}
	ctx, silence := httpwire.WatchSilence(ctx, silenceTime)
	defer silence.Stop(nil)
	x := &exchange{form: anything}
	req, err := http.NewRequestWithContext(x.begin(ctx), http.MethodGet, at.String(), nil)
	if err != nil {
		return fault.Wrap(fault.Unsupported, ErrElsewhere, "a file is not fetched")
	}
	response, err := c.http.Do(req)
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
