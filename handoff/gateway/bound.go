package gateway

import (
	"math"
	"math/bits"
	"net/http"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// added is the most that providers add to a request by themselves, in tokens: the frames of
// messages, and what tells a model how to call tools, for which Anthropic names up to 530.
const added = 1024

// perImage is the most that an image takes by the rule of a vendor, in tokens. The others have
// none that holds for all of their models.
var perImage = map[catalog.Kind]int64{
	catalog.Anthropic: 4784, // a patch of 28 x 28 pixels is a token, after larger images were made smaller
}

// inputBound returns the most tokens that the request can be at a provider of a kind, for a
// model with a context window; 0 is one that nobody knows. No token is less than a byte. It is
// not known of what isn't text, has no rule, and has no window either.
func (q *request) inputBound(kind catalog.Kind, window int64) (bound int64, known bool) {
	bound = int64(len(q.body)) + added
	if kind == catalog.Script {
		return bound, true // it counts bytes
	}
	image, ruled := perImage[kind]
	opaque := q.seen.opaque || q.seen.images > 0 && !ruled
	if ruled {
		bound += image*q.seen.images - q.seen.imageBytes
	}
	switch {
	case window == 0 || q.dialect.name == catalog.Embeddings: // each text of several may fill the window
		return bound, !opaque
	case opaque:
		return window, true
	}
	return min(bound, window), true
}

func (q *request) refuseUnknown() *Refusal {
	r := refuse(http.StatusPaymentRequired, RuleContext,
		"a budget holds for this run, and nobody knows how many tokens it takes to read what isn't text in "+
			"this request")
	if q.dialect.name == catalog.Embeddings {
		return r.hint("send texts alone")
	}
	return r.hint("whoever runs this server can write the context window of the model, in tokens, with "+
		"models.%s.context", q.model)
}

// cost returns what tokens cost, in billionths, rounded up. Without a price it is 0.
func cost(u Usage, p *catalog.Price) int64 {
	if p == nil {
		return 0
	}
	plain := max(u.Input-u.Cached-u.CacheWrite, 0)
	var high, low uint64
	for _, part := range [][2]int64{
		{plain, p.Input},
		{u.Cached, p.Cached},
		{u.CacheWrite, p.CacheWrite},
		{u.Output, p.Output},
	} {
		h, l := bits.Mul64(uint64(max(part[0], 0)), uint64(max(part[1], 0)))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	low, carry := bits.Add64(low, million-1, 0)
	high += carry
	if high >= million {
		return math.MaxInt64 / 4
	}
	whole, _ := bits.Div64(high, low, million)
	return int64(min(whole, math.MaxInt64/4))
}

// worst is the most that so many tokens are, and what they would cost.
func worst(input, output int64, p *catalog.Price) ledger.Amount {
	u := Usage{Input: input, Output: output}
	if p != nil && p.CacheWrite > p.Input {
		u.CacheWrite = u.Input
	}
	return ledger.Amount{Tokens: u.Input + u.Output, Cost: cost(u, p)}
}

// million tokens are what a price is for.
const million = 1_000_000
