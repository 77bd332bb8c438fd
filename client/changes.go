package client

import (
	"context"
	"io"
	"net/http"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// maxChanges bounds a list of changes.
const maxChanges = 128 << 20

// Changes returns what a run made of the files of its workspace, as JSON that nobody has read:
// see workspace.ReadChanges. A NotFound fault says that it changed none.
func (c *Client) Changes(ctx context.Context, id string) ([]byte, error) {
	response, err := c.ask(ctx, toRun(http.MethodGet, id, "changes"))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return c.readChanges(ctx, response.Body)
}

func (c *Client) readChanges(ctx context.Context, body io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxChanges+1))
	switch {
	case err != nil:
		return nil, c.lost(ctx, err)
	case len(raw) > maxChanges:
		return nil, fault.New(fault.TooLarge, "the list of changes has more than %d bytes", maxChanges)
	}
	return raw, nil
}

// Patch writes what a run made of the files of its workspace to w, as a patch in git's format.
func (c *Client) Patch(ctx context.Context, id string, w io.Writer) error {
	response, err := c.ask(ctx, toRun(http.MethodGet, id, "changes.patch"))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return c.lost(ctx, err)
	}
	return nil
}

// ChangedFile is File for the new content of a file that the run changed: of a link its target.
// The path is one of a list that was read by workspace.ReadChanges.
func (c *Client) ChangedFile(ctx context.Context, id string, change api.Change, w io.Writer) error {
	file := api.File{Name: change.Path, SizeBytes: change.Size, SHA256: change.After}
	return c.download(ctx, id, file, w, "changes", "files")
}
