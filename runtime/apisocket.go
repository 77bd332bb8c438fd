package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

const socketName = "aod.sock"

// Outgoing is the directory of the files that the program hands to units that it calls. It
// lies beside io and is mounted over it: in io, the program may rename anything.
func (l Layout) Outgoing() string { return l.path("outgoing") }

// Incoming is the directory in which the program finds the files of units that it called.
func (l Layout) Incoming() string { return l.path("incoming") }

// Listen makes the socket of the capsule API, which the sandbox sees in /run/aod. It replaces
// the socket of a dead process. For an engine that runs elsewhere
// it is the listener of a tunnel, which opens as soon as the sandbox runs.
func (l Layout) Listen(ctx context.Context) (net.Listener, error) {
	if l.remote != nil {
		return l.remote.tunnel, nil
	}
	return l.listen(ctx, socketName)
}

// listen makes a socket that the sandbox sees in /run/aod.
func (l Layout) listen(ctx context.Context, name string) (net.Listener, error) {
	dir, err := os.Open(l.path("aod"))
	if err != nil {
		return nil, unwritable(err)
	}
	defer func() { _ = dir.Close() }() // holds no data
	if err := os.Remove(l.path("aod/" + name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unwritable(err)
	}
	listener, err := listenIn(ctx, dir, name)
	if err != nil {
		return nil, unwritable(err)
	}
	if err := os.Chmod(l.path("aod/"+name), 0o666); err != nil { // everybody in the sandbox may connect
		return nil, errors.Join(unwritable(err), listener.Close())
	}
	return listener, nil
}

// maxSocketPath is the length in bytes that a socket's address may have on every system.
const maxSocketPath = 103

// listenIn makes the socket in dir. Where its path is too long, it names dir by its descriptor.
func listenIn(ctx context.Context, dir *os.File, name string) (net.Listener, error) {
	path := filepath.Join(dir.Name(), name)
	if len(path) > maxSocketPath {
		path = filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), name)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // the socket is removed with its directory
	return listener, nil
}
