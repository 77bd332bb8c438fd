package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

// Say gives a run that goes on a message, of which its program hears, and returns the message as the
// server has it. A Conflict fault says that the run is over.
func (c *Client) Say(ctx context.Context, id string, s api.Saying) (api.MessageEvent, error) {
	var said api.MessageEvent
	if err := checkID(id); err != nil {
		return said, err
	}
	body, err := jsonBody(s)
	if err != nil {
		return said, err
	}
	_, err = c.call(ctx, request{
		method: http.MethodPost, path: []string{"v1", "runs", id, "messages"}, body: body,
		header: map[string]string{"Content-Type": "application/json", "Idempotency-Key": keyOr("")},
	}, &said)
	return said, err
}

// Messages lists the messages of a run in the order in which they came. It requests pages of them as
// they are wanted. After an error it yields no more.
func (c *Client) Messages(ctx context.Context, id string) iter.Seq2[api.HeardMessage, error] {
	return told(ctx, c, id, "messages", func(p api.MessagePage) ([]api.HeardMessage, *int64) { return p.Messages, p.Next })
}

// Artifacts lists what a run told of its artifacts, in the order in which it did, as Messages does.
func (c *Client) Artifacts(ctx context.Context, id string) iter.Seq2[api.ToldArtifact, error] {
	return told(ctx, c, id, "artifacts", func(p api.ArtifactPage) ([]api.ToldArtifact, *int64) { return p.Artifacts, p.Next })
}

// told yields what the pages below a place of a run's address have.
func told[P, T any](ctx context.Context, c *Client, id, place string, of func(P) ([]T, *int64)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := checkID(id); err != nil {
			yield(none, err)
			return
		}
		for after := int64(0); ; {
			var page P
			query := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {"100"}}
			if _, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "runs", id, place}, query: query}, &page); err != nil {
				yield(none, err)
				return
			}
			all, next := of(page)
			for _, one := range all {
				if !yield(one, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if *next <= after {
				yield(none, c.strange(errNoProgress))
				return
			}
			after = *next
		}
	}
}

// ArtifactFile writes a file of an artifact of a run to w, as File does with a file of its result.
func (c *Client) ArtifactFile(ctx context.Context, id, artifact string, file api.File, w io.Writer) error {
	if artifact == "" {
		return fault.New(fault.Input, "the artifact has no id")
	}
	return c.file(ctx, id, file, w, "artifacts", artifact)
}
