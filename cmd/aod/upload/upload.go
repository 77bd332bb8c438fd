// Package upload sends the directory of a unit to a server. It must not know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package upload

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
)

// definition lists the files that make a directory a capsule. They are uploaded even if
// .dockerignore excludes them from the image.
var definition = []string{".dockerignore", "Dockerfile", "agent.yaml", "schema.json", "tools.yaml"}

// Unit returns the name of the server's unit that an argument DIR|NAME means: a directory is uploaded. With replace
// it may take the place of another upload.
func Unit(ctx context.Context, env *cli.Env, server *client.Client, arg string, replace bool) (string, error) {
	if lookup.IsName(arg) && replace {
		return "", fault.New(fault.Input, "%q is the name of a unit on the server, and --replace is for uploads", arg).
			WithHint("name the directory to upload, such as ./%s, or leave out --replace", arg)
	}
	if lookup.IsName(arg) {
		return arg, nil
	}
	dir, err := lookup.Dir(env, arg)
	if err != nil {
		return "", err
	}
	return send(ctx, env, server, dir, replace)
}

func send(ctx context.Context, env *cli.Env, server *client.Client, dir string, replace bool) (string, error) {
	c, err := lookup.LoadDir(env, dir)
	if err != nil {
		return "", err
	}
	files, err := c.Context()
	if err != nil {
		return "", err
	}
	env.Note("uploading %s to %s", c.Name, server.Server())
	reader, writer := io.Pipe()
	var sending sync.WaitGroup
	sending.Go(func() { _ = writer.CloseWithError(writeCapsule(writer, c, files)) }) // never fails
	put := server.Units.Add
	if replace {
		put = server.Units.Put
	}
	info, created, err := put(ctx, c.Name, reader)
	_ = reader.Close() // ends the writer if the server didn't read everything
	sending.Wait()
	if err != nil {
		return "", err
	}
	if !created {
		env.Note("%s is up to date there", c.Name)
	}
	return info.Name, nil
}

// writeCapsule writes the definition's files that .dockerignore excludes, then the build
// context.
func writeCapsule(w io.Writer, c *capsule.Capsule, files *capsule.Context) error {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return fault.Wrap(fault.Capsule, err, "%q can't be read", c.Dir)
	}
	defer root.Close()
	hidden := tar.NewWriter(w)
	sent := files.Files()
	for _, name := range definition {
		if slices.Contains(sent, name) {
			continue
		}
		if err := addFile(hidden, root, name); err != nil {
			return fault.Wrap(fault.Capsule, err, "the file %q can't be sent", name)
		}
	}
	if err := hidden.Flush(); err != nil {
		return err
	}
	return files.WriteTar(w)
}

// addFile adds a regular file, which may be missing.
func addFile(t *tar.Writer, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	raw, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{
		Name: name, Typeflag: tar.TypeReg, Size: int64(len(raw)),
		Mode: 0o644,
	}); err != nil {
		return err
	}
	_, err = t.Write(raw)
	return err
}
