package client

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Say gives a run that goes on a message, of which its program hears, and returns the message as the
// server has it. A Conflict fault says that the run is over.
func (c *Client) Say(ctx context.Context, id string, s api.Saying) (api.MessageEvent, error) {
	r := toRun(http.MethodPost, id, "messages").with(s)
	r.header["Idempotency-Key"] = keyOr("")
	return got[api.MessageEvent](ctx, c, r)
}

// Messages lists the messages of a run in the order in which they came. It requests pages of them as
// they are wanted. After an error it yields no more.
func (c *Client) Messages(ctx context.Context, id string) iter.Seq2[api.HeardMessage, error] {
	return numbered(ctx, c, toRun(http.MethodGet, id, "messages"), 100,
		func(p api.MessagePage) ([]api.HeardMessage, *int64) { return p.Messages, p.Next })
}

// Artifacts lists what a run told of its artifacts, in the order in which it did, as Messages does.
func (c *Client) Artifacts(ctx context.Context, id string) iter.Seq2[api.ToldArtifact, error] {
	return numbered(ctx, c, toRun(http.MethodGet, id, "artifacts"), 100,
		func(p api.ArtifactPage) ([]api.ToldArtifact, *int64) { return p.Artifacts, p.Next })
}

// ArtifactFile writes a file of an artifact of a run to w, as File does with a file of its result.
func (c *Client) ArtifactFile(ctx context.Context, id, artifact string, file api.File, w io.Writer) error {
	if artifact == "" {
		return fault.New(fault.Input, "the artifact has no id")
	}
	return c.file(ctx, id, file, w, "artifacts", artifact)
}
