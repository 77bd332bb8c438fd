package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// No sandbox is led from Windows (see cmd/aod): what only that needs isn't there.

func freeBytes(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return int64(free), err //nolint:gosec // no disk has 2^63 bytes
}

func blocks(info fs.FileInfo) int64 { return info.Size() }

func renameBetween(*os.File, *os.File, string) error { return errors.ErrUnsupported }

func makePipe(string) error { return errors.ErrUnsupported }

func makeFIFO(*os.File, string) error { return errors.ErrUnsupported }

// inode tells a file from all others.
type inode struct{ dev, ino uint64 }

func fileOf(any) inode { return inode{} }

// processes are never seen: they are in a Linux of their own.
type processes struct{}

func findProcesses(ContainerState, string) *processes { return nil }

func (*processes) bytesWritten() int64 { return 0 }

func (*processes) heldOn(context.Context, string) map[inode]int64 { return nil }

func (*processes) heldElsewhere(context.Context, string) map[inode]int64 { return nil }
