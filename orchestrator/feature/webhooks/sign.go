package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// The headers of Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

const (
	secretPrefix = "whsec_"
	leastKey     = 24 // bytes, as the specification has it
	mostKey      = 64
	madeKey      = 32
	scheme       = "v1," // before a signature by HMAC-SHA256
)

// Key is what requests are signed with.
type Key struct{ secret []byte }

// String hides the key.
func (Key) String() string { return "(a key)" }

// newSecret makes a secret as it is written.
func newSecret() string {
	raw := make([]byte, madeKey)
	_, _ = rand.Read(raw) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(raw)
}

// ParseSecret returns the key that a secret is, which is written as "whsec_" and base64 of 24 to 64 bytes. The error is
// an Input fault without a part of it.
func ParseSecret(text string) (Key, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(raw) < leastKey || len(raw) > mostKey || strings.ContainsAny(text, "\r\n") {
		return Key{}, fault.New(fault.Input, "the secret isn't whsec_ and base64 of %d to %d bytes", leastKey, mostKey).
			WithFindings([]fault.Finding{{
				Pointer: "/secret", Message: "it isn't whsec_ and base64 of 24 to 64 bytes",
				Hint: "leave it out, and the server makes one",
			}})
	}
	return Key{raw}, nil
}

// sign returns the signature of a message.
func (k Key) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return scheme + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signed are the headers of a message that is sent at a time, with a signature by each of the keys.
func signed(keys []Key, id string, at time.Time, body []byte) http.Header {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, k := range keys {
		signatures = append(signatures, k.sign(id, timestamp, body))
	}
	return http.Header{
		headerID: {id}, headerTimestamp: {timestamp}, headerSignature: {strings.Join(signatures, " ")},
	}
}
