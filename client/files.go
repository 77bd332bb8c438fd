package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Files fetches output files of runs.
type Files struct{ conn *conn }

// List lists the output files of a run. Names and sizes are the server's claims.
func (c Files) List(ctx context.Context, id string) ([]api.File, error) {
	list, err := got[struct{ Files []api.File }](ctx, c.conn, toRun(http.MethodGet, id, "files"))
	return list.Files, err
}

// Get writes one output file of a run to w, as it comes. Only if the error is nil is it
// the recorded file, in size and SHA-256. After a lost connection Get requests the rest.
func (c Files) Get(ctx context.Context, id string, file api.File, w io.Writer) error {
	return c.conn.file(ctx, id, file, w, "files")
}

// Download fetches output files of a run into a directory and returns them with their
// absolute paths. The directory is made if there is a file to write. A file appears under
// its name when it is complete, and replaces a file of that name. Nothing is written
// outside the directory, whatever the names and links in it are. With an error, the files
// fetched before it are returned too.
func (c Files) Download(ctx context.Context, id string, files []api.File, dir string) ([]api.File, error) {
	return fetchAll(ctx, id, files, dir, c.Get)
}

// file is Files.Get for the files that lie below a place of the run's address.
func (c *conn) file(ctx context.Context, id string, file api.File, w io.Writer, place ...string) error {
	if err := api.CheckFileName(file.Name); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server names a file of the run in a way that is refused")
	}
	return c.download(ctx, toRun(http.MethodGet, id, below(file, place...)...), file, w)
}

// below is the address of a file below a place.
func below(file api.File, place ...string) []string {
	return slices.Concat(place, strings.Split(file.Name, "/"))
}

// download is file for a name that was checked.
func (c *conn) download(ctx context.Context, from request, file api.File, w io.Writer) error {
	d := download{conn: c, from: from, file: file, w: w, sum: sha256.New()}
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
	conn   *conn
	from   request // of the whole file
	file   api.File
	w      io.Writer
	sum    hash.Hash
	got    int64
	failed error // of w
}

// File writes a file of an artifact of a run to w, as Files.Get does with a file of its result.
func (c Artifacts) File(ctx context.Context, id, artifact string, file api.File, w io.Writer) error {
	if artifact == "" {
		return fault.New(fault.Input, "the artifact has no id")
	}
	return c.conn.file(ctx, id, file, w, "artifacts", artifact)
}

// connection fetches the missing bytes. Its error is the server's, the connection's or w's.
func (d *download) connection(ctx context.Context) error {
	response, err := d.conn.ask(ctx, d.request())
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
		return d.conn.lost(ctx, err)
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
		return d.conn.lost(ctx, err)
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

// fetcher writes a file of a run, such as Files.Get.
type fetcher func(ctx context.Context, id string, file api.File, w io.Writer) error

func fetchAll(ctx context.Context, id string, files []api.File, dir string, from fetcher) ([]api.File, error) {
	if len(files) == 0 {
		return nil, nil
	}
	for _, f := range files { // check all before anything is written
		if err := checkName(f); err != nil {
			return nil, err
		}
	}
	root, err := openTarget(dir)
	if err != nil {
		return nil, unwritten(err, "the output directory %q can't be used", dir)
	}
	defer root.Close()
	fetched := make([]api.File, 0, len(files))
	for _, f := range files {
		if f.Path, err = fetch(ctx, id, f, root, from); err != nil {
			return fetched, err
		}
		fetched = append(fetched, f)
	}
	return fetched, nil
}

func checkName(f api.File) error {
	err := api.CheckFileName(f.Name)
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the server names an output file %q, which is refused", f.Name).
		WithHint("no file was fetched; is it a server that you trust?")
}

func openTarget(dir string) (*os.Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(abs)
}

func unwritten(err error, format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, err, format, args...).
		WithHint("is the disk full, or something in the way? another directory may do")
}

// fetch writes to a temporary name, so that a half-written result is never visible.
func fetch(ctx context.Context, id string, f api.File, root *os.Root, from fetcher) (string, error) {
	name := f.Name
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return "", unwritten(err, "the output file %q can't be written", name)
	}
	temp := path.Join(path.Dir(name), ".aod-"+rand.Text())
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", unwritten(err, "the output file %q can't be written", name)
	}
	err = from(ctx, id, f, io.Writer(file))
	if closed := file.Close(); err == nil && closed != nil {
		err = unwritten(closed, "the output file %q can't be written", name)
	}
	if err == nil {
		if renamed := root.Rename(temp, name); renamed != nil {
			err = unwritten(renamed, "the output file %q can't be written", name)
		}
	}
	if err != nil {
		return "", errors.Join(err, root.Remove(temp))
	}
	return filepath.Join(root.Name(), filepath.FromSlash(name)), nil
}

// maxChanges bounds a list of changes.
const maxChanges = 128 << 20

// Changes tells what runs made of the files of their workspaces.
type Changes struct{ conn *conn }

// List returns what a run made of the files of its workspace, as JSON that nobody has read:
// see workspace.ReadChanges. A NotFound fault says that it changed none.
func (c Changes) List(ctx context.Context, id string) ([]byte, error) {
	response, err := c.conn.ask(ctx, toRun(http.MethodGet, id, "changes"))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return c.conn.readChanges(ctx, response.Body)
}

func (c *conn) readChanges(ctx context.Context, body io.Reader) ([]byte, error) {
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
func (c Changes) Patch(ctx context.Context, id string, w io.Writer) error {
	return c.conn.copyTo(ctx, toRun(http.MethodGet, id, "changes.patch"), w)
}

// PatchOf is Patch for one of the changed files alone, by its path.
func (c Changes) PatchOf(ctx context.Context, id, name string, w io.Writer) error {
	r := toRun(http.MethodGet, id, "changes.patch")
	r.query = url.Values{"file": {name}}
	return c.conn.copyTo(ctx, r, w)
}

// copyTo writes what the server answers with to w.
func (c *conn) copyTo(ctx context.Context, r request, w io.Writer) error {
	response, err := c.ask(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return c.lost(ctx, err)
	}
	return nil
}

// File is Files.Get for the new content of a file that the run changed: of a link its target.
// The path is one of a list that was read by workspace.ReadChanges.
func (c Changes) File(ctx context.Context, id string, change api.Change, w io.Writer) error {
	file := api.File{Name: change.Path, SizeBytes: change.Size, SHA256: change.After}
	return c.conn.download(ctx, toRun(http.MethodGet, id, below(file, "changes", "files")...), file, w)
}

// OfSession is List for what the turns of a session made of its workspace so far, with the
// run that has them: Patch and File take that.
func (c Changes) OfSession(ctx context.Context, id string) (run string, changes []byte, err error) {
	response, err := c.conn.ask(ctx, toSession(http.MethodGet, id, "changes"))
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	run, _ = strings.CutPrefix(response.Header.Get("Content-Location"), "/v1/runs/")
	run, _, _ = strings.Cut(run, "/")
	if err := checkID(run); err != nil {
		return "", nil, fault.New(fault.Internal, "the server doesn't say which turn made the changes")
	}
	changes, err = c.conn.readChanges(ctx, response.Body)
	return run, changes, err
}

// Artifacts tells what runs show before their end.
type Artifacts struct{ conn *conn }

// List lists what a run told of its artifacts, in the order in which it did, as Runs.Messages does.
func (c Artifacts) List(ctx context.Context, id string) iter.Seq2[api.ToldArtifact, error] {
	return numbered(ctx, c.conn, toRun(http.MethodGet, id, "artifacts"), 100,
		func(p api.ArtifactPage) ([]api.ToldArtifact, *int64) { return p.Artifacts, p.Next })
}
