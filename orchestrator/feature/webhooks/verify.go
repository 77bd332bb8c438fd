package webhooks

import (
	"crypto/hmac"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	mostOff        = 5 * time.Minute // between a message's time and now
	mostID         = 255             // bytes
	mostSignatures = 16
	mostDigits     = 12 // of a timestamp
)

// Verify returns the id of a message that somebody sends, if it is signed with the key and not old. It takes as long
// whatever is wrong with it.
func (k Key) Verify(header http.Header, body []byte, now time.Time) (id string, good bool) {
	id, timestamp := only(header, headerID), only(header, headerTimestamp)
	want := []byte(k.sign(id, timestamp, body))
	given := strings.Fields(only(header, headerSignature))
	for _, signature := range given[:min(len(given), mostSignatures)] {
		if hmac.Equal([]byte(signature), want) {
			good = true
		}
	}
	return id, good && isID(id) && isNear(timestamp, now)
}

// only is the value of a header that is there once; else "".
func only(header http.Header, name string) string {
	if values := header.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// isID reports whether a text can be the id of a message. One with a dot could be taken for another id and time.
func isID(id string) bool {
	return id != "" && len(id) <= mostID &&
		!strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '.' })
}

func isNear(timestamp string, now time.Time) bool {
	if timestamp == "" || len(timestamp) > mostDigits || strings.Trim(timestamp, "0123456789") != "" {
		return false
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	return err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= mostOff
}

// NoKey returns a key that nobody has: what is verified with it in the place of one that isn't there takes as long.
func NoKey() Key {
	key, _ := ParseSecret(newSecret()) // always one
	return key
}
