package agenthttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Exchange is one HTTP request to an agent.
type Exchange struct {
	Method string
	Path   string // below the agent's address
	Accept string // the media type that is wanted
	Body   []byte // JSON; nil is none
}

// Answer is an agent's answer to an Exchange, whatever its status is. A failed read of its
// body is a fault, as the errors of Do are.
type Answer struct {
	*http.Response
	client *Client
	over   func() error            // why the time for it ended, nil before that
	end    context.CancelCauseFunc // cuts the connection
	stop   context.CancelFunc
}

// Do makes one request and returns the answer as it comes: Run and Stream read it by the
// contract. Options.Timeout bounds the time until Close. No answer is an Unavailable fault,
// a timeout a Deadline fault; the end of ctx is its own error.
func (c *Client) Do(ctx context.Context, x Exchange) (*Answer, error) {
	ctx, stop := context.WithTimeoutCause(ctx, c.opts.Timeout, errTimeout)
	ctx, end := context.WithCancelCause(ctx)
	response, err := c.exchange(ctx, x) //nolint:bodyclose // Answer.Close closes it
	if err != nil {
		end(nil)
		stop()
		return nil, err
	}
	answer := &Answer{Response: response, client: c, end: end, stop: stop}
	answer.over = func() error {
		if ctx.Err() == nil {
			return nil
		}
		return c.ended(ctx)
	}
	answer.Body = &body{
		response.Body,
		func(err error) error { return c.lost(ctx, err, "the answer of the agent at %s broke off") },
	}
	return answer, nil
}

func (c *Client) exchange(ctx context.Context, x Exchange) (*http.Response, error) {
	req, err := c.request(ctx, x)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err, "the agent at %s does not answer")
	}
	return response, nil
}

// Close closes the connection, even if more is to come.
func (a *Answer) Close() {
	a.end(nil)
	_ = a.Body.Close() // it was read as far as it is wanted
	a.stop()
}

// ReadAll reads the body. If it is larger than Limits.Answer, the error is a TooLarge fault.
func (a *Answer) ReadAll() ([]byte, error) {
	most := a.client.opts.Limits.Answer
	raw, err := io.ReadAll(io.LimitReader(a.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(raw)) > most:
		return nil, fault.New(fault.TooLarge, "the agent's answer is more than is taken: the limit is %d bytes", most)
	}
	return raw, nil
}

// Events reads the body as a stream of events, within Limits.
func (a *Answer) Events() *httpwire.EventReader { return a.eventsOf(a.Body) }

func (a *Answer) eventsOf(r io.Reader) *httpwire.EventReader {
	return httpwire.NewEventReader(r, a.client.opts.Limits.Events())
}

// body is the body of an answer. It converts errors: those of net/http may quote the agent.
type body struct {
	io.ReadCloser
	broke func(error) error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.broke(err)
	}
	return n, err
}
