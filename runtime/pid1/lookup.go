//go:build linux

package pid1

import (
	"errors"
	"strings"
	"syscall"
)

// errNotFound is a program that no directory of the path has.
var errNotFound = errors.New("not found")

// defaultPath is what execvp searches when there is no PATH.
const defaultPath = "/bin:/usr/bin"

// lookup finds the program as execvp(3) does: a name with a slash is a path, another is
// searched for in the directories of the path, where an empty one is the working
// directory. One that exists but can't be executed is EACCES unless a later directory
// has a better one.
func lookup(program, path string) (string, error) {
	if program == "" {
		return "", errNotFound
	}
	if strings.Contains(program, "/") {
		return program, executable(program)
	}
	if path == "" {
		path = defaultPath
	}
	result := errNotFound
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + program
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EACCES) {
			result = err
		}
	}
	return "", result
}

// executable returns nil, errNotFound or EACCES.
func executable(file string) error {
	const mayExecute = 1 // X_OK
	var st syscall.Stat_t
	switch err := syscall.Stat(file, &st); {
	case err == syscall.EACCES:
		return syscall.EACCES
	case err != nil:
		return errNotFound
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return syscall.EACCES
	case syscall.Access(file, mayExecute) != nil:
		return syscall.EACCES
	}
	return nil
}
