package webhooks

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestASecretThatWasRotatedSignsAlongForItsGrace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	secrets := []string{newSecret(), newSecret(), newSecret(), newSecret(), newSecret(), newSecret()}
	signs := func(kept string, at time.Time) (signing string) {
		t.Helper()
		keys, err := keysOf(kept, at)
		if err != nil {
			t.Fatal(err)
		}
		message := signed(keys, "x", at, []byte("{}"))
		for n, secret := range secrets {
			key, _ := ParseSecret(secret)
			if _, good := key.Verify(message, []byte("{}"), at); good {
				signing += string(rune('0' + n))
			}
		}
		if message.Get("Webhook-Signature") == "" || message.Get("Webhook-Id") != "x" {
			t.Errorf("%v", message)
		}
		return signing
	}
	kept := secrets[0]
	for n, c := range []struct {
		grace       time.Duration
		now, anHour string // which sign at once, and an hour later
	}{
		{time.Hour, "01", "1"}, {2 * time.Hour, "012", "12"}, {time.Hour, "0123", "13"}, {time.Hour, "1234", "14"}, {0, "5", "5"},
	} {
		kept = rotated(secrets[n+1], kept, at, c.grace)
		if now, later := signs(kept, at), signs(kept, at.Add(time.Hour)); now != c.now || later != c.anHour {
			t.Errorf("%d: now by %s, in an hour by %s", n, now, later)
		}
	}
}

func FuzzKept(f *testing.F) {
	at := time.Unix(1e9, 0)
	f.Add(newSecret())
	f.Add(rotated(newSecret(), newSecret(), at, time.Hour))
	f.Add("\n \n2026")
	fuzzbound.Run(f, func(t *testing.T, kept string) {
		keys, err := keysOf(kept, at)
		if (err == nil) == (len(keys) == 0) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		secret := newSecret()
		next, err := keysOf(rotated(secret, kept, at, time.Hour), at)
		if err != nil || len(next) > mostEarlier+1 || strings.Contains(kept, secret) { // whatever was kept before
			t.Errorf("%d keys, %v", len(next), err)
		}
	})
}
