package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/agent-on-demand/aod/runtime"
)

var _ runtime.RemoteEngine = (*Engine)(nil)

// Remote reports whether the engine doesn't see this process's files: it is reached
// otherwise than by a socket of this machine, or RemoteEnv says so.
func (e *Engine) Remote() bool { return e.remote || !e.endpoint.local() }

// VolumesByLabel lists the volumes that carry all the labels.
func (e *Engine) VolumesByLabel(ctx context.Context, labels map[string]string) ([]runtime.VolumeRef, error) {
	answer, err := e.cli.VolumeList(ctx, volume.ListOptions{Filters: labelFilter(labels)})
	if err != nil {
		return nil, e.faultOf(ctx, call{"list", "volumes", ""}, err)
	}
	refs := make([]runtime.VolumeRef, 0, len(answer.Volumes))
	for _, v := range answer.Volumes {
		refs = append(refs, runtime.VolumeRef{Name: v.Name, Labels: v.Labels})
	}
	return refs, nil
}

// RemoveVolume removes a volume that no container has.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	err := e.cli.VolumeRemove(ctx, name, false)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.faultOf(ctx, call{"remove", "volume", name}, err)
}

// CopyTo unpacks a tar below a directory of the container.
func (e *Engine) CopyTo(ctx context.Context, id, dir string, tar io.Reader) error {
	err := e.cli.CopyToContainer(ctx, id, dir, tar, container.CopyToContainerOptions{})
	return e.faultOf(ctx, onContainer("copy files to", id), err)
}

// CopyFrom packs a file or directory of the container.
func (e *Engine) CopyFrom(ctx context.Context, id, name string) (io.ReadCloser, error) {
	tar, _, err := e.cli.CopyFromContainer(ctx, id, name)
	if err != nil {
		return nil, e.faultOf(ctx, onContainer("copy files from", id), err)
	}
	return tar, nil
}

// StatIn says what stands at a path in the container.
func (e *Engine) StatIn(ctx context.Context, id, name string) (runtime.FileStat, error) {
	stat, err := e.cli.ContainerStatPath(ctx, id, path.Clean(name))
	if err != nil {
		return runtime.FileStat{}, e.faultOf(ctx, onContainer("look at files of", id), err)
	}
	return runtime.FileStat{Mode: stat.Mode, SizeBytes: stat.Size}, nil
}

// Exec starts a program in the container. Like Attach it takes the connection over by
// itself: the client's way ignores ctx.
func (e *Engine) Exec(ctx context.Context, id string, cmd []string) (io.ReadWriteCloser, error) {
	asked := onContainer("start a program in", id)
	made, err := e.cli.ContainerExecCreate(ctx, id,
		container.ExecOptions{Cmd: cmd, AttachStdin: true, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return nil, e.faultOf(ctx, asked, err)
	}
	body, err := json.Marshal(container.ExecStartOptions{})
	if err != nil {
		return nil, fmt.Errorf("encode exec: %w", err)
	}
	conn, err := e.hijack(ctx, "/exec/"+url.PathEscape(made.ID)+"/start", "", string(body))
	if err != nil {
		return nil, e.faultOf(ctx, asked, err)
	}
	return newConversation(conn), nil
}

// conversation is a program's stdin, and its stdout taken from the frames.
type conversation struct {
	io.Writer
	io.Reader
	streams *runtime.Streams
	drained chan struct{}
}

func newConversation(conn io.ReadWriteCloser) *conversation {
	streams := demultiplex(conn)
	c := &conversation{Writer: conn, Reader: streams.Stdout, streams: streams, drained: make(chan struct{})}
	go func() {
		defer close(c.drained)
		_, _ = io.Copy(io.Discard, streams.Stderr) // nobody reads it
	}()
	return c
}

// Close ends reads and writes that are under way.
func (c *conversation) Close() error {
	err := c.streams.Close()
	<-c.drained
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
