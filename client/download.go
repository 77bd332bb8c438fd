package client

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Download fetches output files of a run into a directory and returns them with their
// absolute paths. The directory is made if there is a file to write. A file appears under
// its name when it is complete, and replaces a file of that name. Nothing is written
// outside the directory, whatever the names and links in it are. With an error, the files
// fetched before it are returned too.
func (c *Client) Download(ctx context.Context, id string, files []api.File, dir string) ([]api.File, error) {
	return fetchAll(ctx, id, files, dir, c.File)
}

// fetcher writes a file of a run, such as Client.File.
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
