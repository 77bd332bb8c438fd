package a2apeer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

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
	response, err := c.http.Do(req)
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
