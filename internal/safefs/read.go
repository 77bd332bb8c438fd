package safefs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// ErrTooLarge says that there is more to read than may be.
var ErrTooLarge = errors.New("it is too large")

// ReadAtMost reads to the end, which has to come after so many bytes. The error is ErrTooLarge or
// the reader's.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(raw)) > most {
		return nil, ErrTooLarge
	}
	return raw, err
}

// ReadNamed reads a file as OpenNamed opens it, whole or not at all.
func ReadNamed(path string, most int64) ([]byte, error) {
	f, _, err := OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAtMost(f, most)
}

// ReadRegular reads a file as OpenRegular opens it, whole or not at all.
func ReadRegular(root *os.Root, name string, most int64) ([]byte, error) {
	f, _, err := OpenRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAtMost(f, most)
}

// Digest reads to the end, and returns how many bytes that were and their SHA-256 in hex.
func Digest(r io.Reader) (size int64, sum string, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, r)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}

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
