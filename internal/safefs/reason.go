package safefs

import (
	"errors"
	"io/fs"
	"strings"
)

// Reason returns the innermost cause of a file error, without the path, for a message that
// names the path already.
func Reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return strings.TrimSpace(err.Error())
}

// Describe names a kind of file as a person would, with its article: "a directory", "a
// FIFO".
func Describe(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
