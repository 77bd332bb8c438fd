package runtime

import (
	"context"
	"io"
	"io/fs"
)

// RemoteEngine is an Engine that may not see this host's files. Files that it can't mount are
// copied to it, and connections go through it. An Engine that isn't a RemoteEngine sees them.
//
// An engine elsewhere doesn't see our files: volumes.fill, volumes.fetch carry them through a container that never
// starts, FileTransfer.Fetch those of handoffs, and Layout.Listen gives a tunnel's listener. Then there is no pool, no
// mounted model, nothing streamed to a program.
type RemoteEngine interface {
	Containers
	Volumes
	Archives
	Execs
	// Remote reports whether the engine doesn't see this process's files.
	Remote() bool
}

// Volumes lists and removes named volumes. ContainerSpec.Volumes makes them.
type Volumes interface {
	// VolumesByLabel lists the names of volumes that carry all the labels; an empty
	// value matches any.
	VolumesByLabel(ctx context.Context, labels map[string]string) ([]VolumeRef, error)
	// RemoveVolume removes a volume that no container uses. A missing volume isn't an error; one
	// in use is a Conflict.
	RemoveVolume(ctx context.Context, name string) error
}

// VolumeRef names a volume that was found by its labels.
type VolumeRef struct {
	Name   string
	Labels map[string]string
}

// Archives reads and writes the files of a container in any state, as tar.
type Archives interface {
	// CopyTo unpacks a tar below a directory of the container, with the tar's owners and
	// modes. It may read once more when ctx ends: the caller lets the tar end then.
	CopyTo(ctx context.Context, id, dir string, tar io.Reader) error
	// CopyFrom packs a file, or a directory with everything below it, under its base name. The
	// caller closes the stream. Its content is as hostile as the container's program.
	CopyFrom(ctx context.Context, id, path string) (io.ReadCloser, error)
	// StatIn describes the file at a path, without following a link there.
	StatIn(ctx context.Context, id, path string) (FileStat, error)
}

// FileStat describes a file in a container.
type FileStat struct {
	Mode      fs.FileMode
	SizeBytes int64
}

// Execs runs programs of ours in a running container.
type Execs interface {
	// Exec starts a program as the container's user, and returns its stdin and stdout. Its
	// stderr is dropped. Close ends its stdin; the program should end by itself then.
	Exec(ctx context.Context, id string, cmd []string) (io.ReadWriteCloser, error)
}

// IsRemote reports whether an engine doesn't see this host's files.
func IsRemote(engine Containers) bool {
	_, ok := remoteOf(engine)
	return ok
}

// remoteOf returns the engine as a remote one, if it is.
func remoteOf(engine Containers) (RemoteEngine, bool) {
	remote, ok := engine.(RemoteEngine)
	return remote, ok && remote.Remote()
}
