package gateway

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// failure is an attempt that gave no answer.
type failure struct {
	refusal *Refusal
	next    next
	after   time.Duration // for which the provider wants to be left alone
	billed  bool          // the provider may charge for it
	usage   *meter        // what it says that it charges for; nil: it says nothing
}

// next is who is asked after a failure.
type next uint8

const (
	same    next = iota // the same provider once more
	another             // the next of the model's
	nobody              // the failure is the answer
)

func (f *failure) hint(text string) *failure {
	f.refusal.Hint = text
	return f
}

func (f *failure) because(err error) *failure {
	f.refusal.err = err
	return f
}

// bill notes that the provider may charge for the attempt.
func (f *failure) bill() *failure {
	f.billed = true
	return f
}

// counted notes what the provider says that the attempt took. Where it says nothing, it took nothing.
func (f *failure) counted(m *meter) *failure {
	if m.known {
		f.usage = m
	}
	return f
}

// says adds the provider's own words; "" are none.
func (f *failure) says(words string) *failure {
	if words != "" {
		f.refusal.Msg += ": " + words
	}
	return f
}

// badKey is the failure of a provider whose key is of no use.
func badKey(format string, args ...any) *failure {
	return failed502(another, RuleKey, format, args...).hint("whoever runs this server sees more with: aod models")
}

func failed502(n next, rule, format string, args ...any) *failure {
	return &failure{next: n, refusal: refuse(http.StatusBadGateway, rule, format, args...)}
}

// quotedKey is the failure of an answer that has the key of its provider in it.
func quotedKey(provider string) *failure {
	return badKey("the provider %s quotes its key", provider).bill()
}

func silent(provider string) *failure {
	refusal := refuse(http.StatusGatewayTimeout, RuleSilent, "the provider %s doesn't answer in time", provider).
		hint("stream the answer, or ask for less").because(httpwire.ErrSilent)
	return &failure{refusal: refusal, next: another, billed: true}
}

// refusedWith is the failure of a request that the provider refuses; nil is no body to pass on.
func refusedWith(status int, provider string, body []byte) *failure {
	refusal := refuse(status, RuleProvider, "the provider %s refuses the request", provider).
		hint("read the dialect's documentation")
	refusal.passed = body
	return &failure{refusal: refusal, next: nobody}
}

func down(provider string, status int) *failure {
	return failed502(same, RuleProvider, "the provider %s answers with the status %d", provider, status).
		hint("ask again later")
}

func withNext(f *failure, n next) *failure {
	f.next = n
	return f
}

// limited is the failure of a provider that has too much to do, or whose quota is spent.
func limited(provider string, u *upstream, body []byte) *failure {
	f := overRate(provider)
	if u.status != http.StatusTooManyRequests {
		f.refusal.Status, f.refusal.Rule = http.StatusBadGateway, RuleProvider
	}
	if bytes.Contains(body, []byte("insufficient_quota")) {
		f.next = another
	}
	return f.leftAlone(u.header)
}

func overRate(provider string) *failure {
	return &failure{refusal: refuse(http.StatusTooManyRequests, RuleRate,
		"the provider %s takes no more requests for now", provider).hint("ask again later, or less often")}
}

// maxPause is how long one waits for a provider.
const maxPause = time.Minute

// leftAlone heeds the provider's wish for a pause. Of a long one another provider is asked.
func (f *failure) leftAlone(h http.Header) *failure {
	f.after = retryAfter(h)
	if f.after > maxPause {
		f.after, f.next = 0, another
	}
	return f
}

func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 32); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
