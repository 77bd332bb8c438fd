package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	selfLasts = 10 * 365 * 24 * time.Hour
	selfRenew = 90 * 24 * time.Hour // before its end
)

// Self returns the files of a certificate that signs itself, and makes what is missing of them in a directory. The key
// is made once, and with it the pin; the certificate again when a name is new or its end is near. Names are host names
// and IP addresses. The error is an Input fault for a key that is there and can't be used.
func Self(dir string, names []string) (Pair, error) {
	pair := Pair{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	if _, err := os.Stat(pair.Key); errors.Is(err, fs.ErrNotExist) {
		if _, err := MakeKey(pair.Key); err != nil {
			return pair, err
		}
	}
	key, err := readKey(pair.Key)
	if err != nil {
		return pair, err
	}
	if have, _, err := pair.read(); err == nil && serves(have.Leaf, names) {
		return pair, nil
	}
	if err := makeCert(pair.Cert, key, names); err != nil {
		return pair, unwritable(dir, err)
	}
	return pair, nil
}

func unwritable(dir string, err error) error {
	return fault.Wrap(fault.Unavailable, err, "the server's own certificate can't be made in %q", dir).
		WithHint("is there room on its disk, and may the user of the server write there?")
}

// serves reports whether a certificate is good for the names, and for a while.
func serves(c *x509.Certificate, names []string) bool {
	missing := slices.ContainsFunc(names, func(name string) bool { return c.VerifyHostname(name) != nil })
	return !missing && time.Until(c.NotAfter) > selfRenew && !time.Now().Before(c.NotBefore)
}

// MakeKey makes a key for Self, and returns its pin. The error is an Unavailable fault.
func MakeKey(path string) (Pin, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", unwritable(path, err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", unwritable(path, err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", unwritable(path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", unwritable(path, err)
	}
	if err := safefs.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
		safefs.ReplaceOptions{Mode: 0o600, Synced: true}); err != nil {
		return "", unwritable(path, err)
	}
	return pinOfKey(public), nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	raw, err := readPEM("key", path, true)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(raw); block != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(*ecdsa.PrivateKey); err == nil && ok {
			return key, nil
		}
	}
	return nil, fault.New(fault.Input, "the key in %q can't be used", path).
		WithHint("remove the file, and another one is made: its clients need the new pin then")
}

func makeCert(path string, key *ecdsa.PrivateKey, names []string) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	now := time.Now()
	of := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "aod serve"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfLasts), // a client's clock may be slow
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			of.IPAddresses = append(of.IPAddresses, ip.AsSlice())
		} else {
			of.DNSNames = append(of.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return err
	}
	return safefs.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		safefs.ReplaceOptions{Mode: 0o644, Synced: true})
}
