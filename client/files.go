package client

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Files lists the output files of a run. Names and sizes are the server's claims.
func (c *Client) Files(ctx context.Context, id string) ([]api.File, error) {
	list, err := got[struct{ Files []api.File }](ctx, c, toRun(http.MethodGet, id, "files"))
	return list.Files, err
}

// File writes one output file of a run to w, as it comes. Only if the error is nil is it
// the recorded file, in size and SHA-256. After a lost connection File requests the rest.
func (c *Client) File(ctx context.Context, id string, file api.File, w io.Writer) error {
	return c.file(ctx, id, file, w, "files")
}

// file is File for the files that lie below a place of the run's address.
func (c *Client) file(ctx context.Context, id string, file api.File, w io.Writer, place ...string) error {
	if err := api.CheckFileName(file.Name); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server names a file of the run in a way that is refused")
	}
	return c.download(ctx, id, file, w, place...)
}

// download is file for a name that was checked.
func (c *Client) download(ctx context.Context, id string, file api.File, w io.Writer, place ...string) error {
	d := download{
		client: c, from: toRun(http.MethodGet, id, slices.Concat(place, strings.Split(file.Name, "/"))...),
		file: file, w: w, sum: sha256.New(),
	}
	retries := c.newRetrier()
	for {
		before := d.got
		err := d.connection(ctx)
		if err == nil {
			return d.check()
		}
		if d.got > before {
			retries.renew()
		}
		if !isLost(err) {
			return err
		}
		if err := retries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// download is a file in transfer.
type download struct {
	client *Client
	from   request // of the whole file
	file   api.File
	w      io.Writer
	sum    hash.Hash
	got    int64
	failed error // of w
}

// connection fetches the missing bytes. Its error is the server's, the connection's or w's.
func (d *download) connection(ctx context.Context) error {
	response, err := d.client.ask(ctx, d.request())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := d.catchUp(ctx, response); err != nil {
		return err
	}
	missing := d.file.SizeBytes - d.got
	n, err := io.Copy(d, io.LimitReader(response.Body, missing))
	switch {
	case d.failed != nil:
		return fault.Wrap(fault.Unavailable, d.failed, "the file %q can't be written", d.file.Name).
			WithHint("is the disk full?")
	case err != nil:
		return d.client.lost(ctx, err)
	case n < missing:
		return d.wrong("it has %d bytes, %d were announced", d.got, d.file.SizeBytes)
	}
	if extra, _ := io.ReadFull(response.Body, make([]byte, 1)); extra > 0 {
		return d.wrong("it has more than the %d bytes that were announced", d.file.SizeBytes)
	}
	return nil
}

func (d *download) request() request {
	r := d.from
	if d.got > 0 {
		r.header = map[string]string{"Range": fmt.Sprintf("bytes=%d-", d.got), "If-Range": `"` + d.file.SHA256 + `"`}
	}
	return r
}

// catchUp skips the bytes that are there already, if the server starts again from the
// beginning.
func (d *download) catchUp(ctx context.Context, response *http.Response) error {
	if d.got == 0 {
		return nil
	}
	if response.StatusCode == http.StatusPartialContent {
		if strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.got)) {
			return nil
		}
		return d.wrong("another part of it was sent than the one that was asked for")
	}
	_, err := io.CopyN(io.Discard, response.Body, d.got)
	if errors.Is(err, io.EOF) {
		return d.wrong("it has become shorter")
	}
	if err != nil {
		return d.client.lost(ctx, err)
	}
	return nil
}

// Write passes the bytes to w, and keeps w's error apart from the connection's.
func (d *download) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	_, _ = d.sum.Write(p[:n]) // a hash never fails
	d.got += int64(n)
	if err != nil {
		d.failed = err
	}
	return n, err
}

func (d *download) check() error {
	got := hex.EncodeToString(d.sum.Sum(nil))
	if subtle.ConstantTimeCompare([]byte(got), []byte(d.file.SHA256)) == 1 {
		return nil
	}
	return d.wrong("its SHA-256 is not the one that was announced")
}

func (d *download) wrong(format string, args ...any) error {
	return fault.New(fault.Internal, "the server did not send the file %q as it is: %s", d.file.Name,
		fmt.Sprintf(format, args...)).
		WithHint("try again; if it stays so, look at the server's disk")
}
