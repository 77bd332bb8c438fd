package webhooks

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func vectorHeader(change func(http.Header)) http.Header {
	h := http.Header{"Webhook-Id": {vectorID}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {vectorSignature}}
	if change != nil {
		change(h)
	}
	return h
}

func TestWhichMessagesAreGenuine(t *testing.T) {
	t.Parallel()
	at, key := time.Unix(1614265330, 0), vectorKey(t)
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	signed := func(id, timestamp string) func(http.Header) {
		return func(h http.Header) {
			h.Set("webhook-id", id)
			h.Set("webhook-timestamp", timestamp)
			h.Set("webhook-signature", key.sign(id, timestamp, []byte(vectorBody)))
		}
	}
	for name, c := range map[string]struct {
		change func(http.Header)
		off    time.Duration
		good   bool
	}{
		"the vector":                 {nil, 0, true},
		"almost too old":             {nil, 5 * time.Minute, true},
		"too old":                    {nil, 5*time.Minute + time.Second, false},
		"too new":                    {nil, -5*time.Minute - time.Second, false},
		"one signature of several":   {set("webhook-signature", "v1,AAAA v2,x "+vectorSignature+" v1a,y"), 0, true},
		"behind too many signatures": {set("webhook-signature", strings.Repeat("v1,AAAA ", 16)+vectorSignature), 0, false},
		"another signature":          {set("webhook-signature", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="), 0, false},
		"a part of it":               {set("webhook-signature", "v1,"), 0, false},
		"none":                       {func(h http.Header) { h.Del("webhook-signature") }, 0, false},
		"without an id":              {func(h http.Header) { h.Del("webhook-id") }, 0, false},
		"without a time":             {func(h http.Header) { h.Del("webhook-timestamp") }, 0, false},
		"another id":                 {set("webhook-id", "msg_x"), 0, false},
		"another time":               {set("webhook-timestamp", "1614265331"), 0, false},
		"two ids":                    {func(h http.Header) { h.Add("webhook-id", vectorID) }, 0, false},
		"an id with a dot":           {signed("a.b", "1614265330"), 0, false},
		"an id with a space":         {signed("a b", "1614265330"), 0, false},
		"no id that is signed":       {signed("", "1614265330"), 0, false},
		"a long id":                  {signed(strings.Repeat("x", 256), "1614265330"), 0, false},
		"a time with a sign":         {signed("x", "+1614265330"), 0, false},
		"a time with a point":        {signed("x", "1614265330.0"), 0, false},
		"a time of many digits":      {signed("x", "0001614265330"), 0, false},
		"its own":                    {signed("x", "1614265330"), 0, true},
	} {
		id, good := key.Verify(vectorHeader(c.change), []byte(vectorBody), at.Add(c.off))
		if good != c.good || good && id == "" {
			t.Errorf("%s: %q, %v", name, id, good)
		}
	}
	if _, good := key.Verify(vectorHeader(nil), []byte(vectorBody+" "), at); good {
		t.Error("another body")
	}
	if _, good := NoKey().Verify(vectorHeader(nil), []byte(vectorBody), at); good {
		t.Error("another key")
	}
}

func FuzzVerify(f *testing.F) {
	key := vectorKey(f)
	f.Add(vectorID, "1614265330", vectorSignature, vectorBody)
	f.Add("a.1", "9999999999999999999", "v1, ,v1,", "")
	fuzzbound.Run(f, func(t *testing.T, id, timestamp, signature, body string) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature}}
		if _, good := key.Verify(header, []byte(body), time.Unix(1614265330, 0)); good && !strings.Contains(signature, key.sign(id, timestamp, []byte(body))) {
			t.Errorf("%q %q %q", id, timestamp, signature)
		}
	})
}
