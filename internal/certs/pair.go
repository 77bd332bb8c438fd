package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io/fs"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// maxPEM bounds a certificate with its chain, and a key, in bytes.
const maxPEM = 256 << 10

// Pair names the files of a certificate, in PEM.
type Pair struct {
	Cert string // the server's certificate, then those between it and the root
	Key  string // its private key, which only its owner may read
}

// digest tells two states of a pair's files from one another.
type digest [sha256.Size]byte

// read reads a pair. The digest is that of all that the answer depends on. The error is an Input fault, or a Forbidden
// one for a key that others can read.
func (p Pair) read() (*tls.Certificate, digest, error) {
	cert, err := readPEM("certificate", p.Cert, false)
	if err != nil {
		return nil, sha256.Sum256([]byte(err.Error())), err
	}
	key, err := readPEM("key", p.Key, true)
	if err != nil {
		return nil, sha256.Sum256(append(cert, err.Error()...)), err
	}
	seen := sha256.New()
	for _, part := range [][]byte{cert, {0}, key} {
		_, _ = seen.Write(part) // a hash takes all
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, digest(seen.Sum(nil)), fault.Wrap(fault.Input, err,
			"the certificate in %q and the key in %q aren't a pair", p.Cert, p.Key).
			WithHint("both are PEM, the certificate with those that sign it after it, and the key is that of the first")
	}
	return &pair, digest(seen.Sum(nil)), nil
}

func readPEM(what, path string, secret bool) ([]byte, error) {
	file, info, err := safefs.OpenNamed(path)
	var special *safefs.Irregular
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Input, "there is no %s at %q", what, path).
			WithHint("name a file of PEM in the setting tls")
	case errors.As(err, &special):
		return nil, fault.New(fault.Input, "the %s in %q isn't a regular file", what, path)
	case err != nil:
		return nil, fault.Wrap(fault.Input, err, "the %s in %q can't be read", what, path).
			WithHint("make it readable for the user that runs aod, and the key for nobody else")
	}
	defer file.Close()
	if mode := info.Mode().Perm(); secret && mode&0o077 != 0 {
		return nil, fault.New(fault.Forbidden, "others can read the %s in %q: it has the mode %04o", what, path, mode).
			WithHint("chmod 600 %s; where another service needs the key, copy it for AOD alone", path)
	}
	raw, err := safefs.ReadAtMost(file, maxPEM)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the %s in %q can't be read: %s", what, path, safefs.Reason(err))
	}
	return raw, nil
}
