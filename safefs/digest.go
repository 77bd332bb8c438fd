package safefs

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Digest reads to the end, and returns how many bytes that were and their SHA-256 in hex.
func Digest(r io.Reader) (size int64, sum string, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, r)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}
