package webhooks

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// The vector that the libraries of the specification are tested with.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorBody      = `{"test": 2432232314}`
)

func vectorKey(t testing.TB) Key {
	t.Helper()
	key, err := ParseSecret(vectorSecret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTheVectorOfTheSpecification(t *testing.T) {
	t.Parallel()
	header := signed([]Key{vectorKey(t)}, vectorID, time.Unix(1614265330, 999), []byte(vectorBody))
	if header.Get("webhook-signature") != vectorSignature || header.Get("webhook-id") != vectorID || header.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("%v", header)
	}
}

func TestWhichSecretsAreTaken(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for secret, good := range map[string]bool{
		of(24): true, of(64): true, newSecret(): true, of(23): false, of(65): false, "": false, "whsec_": false,
		strings.TrimPrefix(of(32), "whsec_"): false, "whsk_" + of(32)[6:]: false, of(32) + "\n": false, of(32) + "=": false,
		strings.TrimSuffix(of(32), "="): false, "whsec_" + strings.Repeat("_", 43) + "=": false,
	} {
		key, err := ParseSecret(secret)
		if (err == nil) != good || err != nil && !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", secret, err)
		}
		if text := fmt.Sprintf("%v %s %+v", key, key, key); good && text != "(a key) (a key) (a key)" {
			t.Errorf("a key is printed as %s", text)
		}
	}
	if first, second := newSecret(), newSecret(); first == second {
		t.Error("two secrets are the same")
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(vectorSecret)
	f.Add("whsec_" + strings.Repeat("A", 200))
	fuzzbound.Run(f, func(t *testing.T, text string) {
		key, err := ParseSecret(text)
		if err == nil && "whsec_"+base64.StdEncoding.EncodeToString(key.secret) != text {
			t.Errorf("%q isn't written in one way", text)
		}
	})
}
