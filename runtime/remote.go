package runtime

import (
	"context"
	"io"
	"io/fs"
)

// RemoteEngine is what an engine can do besides that may not see this host's files: what
// can't be mounted from here is carried to it, and talked to through it. An Engine that
// isn't one sees them.
type RemoteEngine interface {
	Containers
	Volumes
	Archives
	Execs
	// Remote reports whether the engine doesn't see this process's files.
	Remote() bool
}

// Volumes lists and removes named volumes. They are made by ContainerSpec.Volumes.
type Volumes interface {
	// VolumesByLabel lists the names of volumes that carry all the labels; an empty
	// value matches any.
	VolumesByLabel(ctx context.Context, labels map[string]string) ([]VolumeRef, error)
	// RemoveVolume removes a volume that no container has. One that isn't there is no
	// error; one that is in use is a Conflict.
	RemoveVolume(ctx context.Context, name string) error
}

// VolumeRef names a volume that was found by its labels.
type VolumeRef struct {
	Name   string
	Labels map[string]string
}

// Archives reads and writes the files of a container in any state, as tar.
type Archives interface {
	// CopyTo unpacks a tar below a directory of the container, with the owners and modes
	// that it names. It may read once more when ctx ends, so that the tar has to end then.
	CopyTo(ctx context.Context, id, dir string, tar io.Reader) error
	// CopyFrom packs a file or a directory with all below it, under its last name. The
	// caller closes the stream, whose content is as hostile as the container's program.
	CopyFrom(ctx context.Context, id, path string) (io.ReadCloser, error)
	// StatIn says what stands at a path, without following a link there.
	StatIn(ctx context.Context, id, path string) (FileStat, error)
}

// FileStat is what stands at a path in a container.
type FileStat struct {
	Mode      fs.FileMode
	SizeBytes int64
}

// Execs runs programs of ours in a running container.
type Execs interface {
	// Exec starts a program as the user that the container has, and returns its stdin
	// and stdout. What it writes to stderr is dropped. Close ends its stdin; the program
	// is to end by itself then.
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
