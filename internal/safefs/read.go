package safefs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
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
