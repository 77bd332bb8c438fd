package certs

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// Pin names the key of a certificate: "sha256:" and the SHA-256 of its SubjectPublicKeyInfo (RFC 7469) in lower-case
// hex, as kubeadm writes it. A certificate that is renewed with its key keeps the pin.
type Pin string

const pinForm = "sha256:"

// PinOf returns the pin of a certificate's key.
func PinOf(c *x509.Certificate) Pin { return pinOfKey(c.RawSubjectPublicKeyInfo) }

// pinOfKey is PinOf for a SubjectPublicKeyInfo.
func pinOfKey(raw []byte) Pin {
	sum := sha256.Sum256(raw)
	return Pin(pinForm + hex.EncodeToString(sum[:]))
}

// ParsePin reads a pin. The error is an Input fault.
func ParsePin(text string) (Pin, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	digest, formed := strings.CutPrefix(text, pinForm)
	if raw, err := hex.DecodeString(digest); !formed || err != nil || len(raw) != sha256.Size {
		return "", fault.New(fault.Input, "%s isn't a pin", fault.Quote(text)).
			WithHint("a pin is sha256: and 64 digits of hex, as aod serve prints it at its start")
	}
	return Pin(text), nil
}
