package gateway

import (
	"math"
	"math/bits"
	"sync"

	"github.com/agent-on-demand/aod/gateway/catalog"
	"github.com/agent-on-demand/aod/gateway/ledger"
)

// What a request may take beside its text, in tokens.
const (
	perMessage = 64
	perImage   = 2048
)

// leastText is how many bytes a text must have to tell how many tokens a model makes of one.
const leastText = 256

// ratios are the most tokens that each model has made of a byte of text, in millionths.
type ratios struct {
	mu  sync.Mutex
	all map[string]int64
}

const million = 1_000_000

// of returns the ratio to reckon with: 1 until a model has shown its own.
func (r *ratios) of(model string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen := r.all[model]; seen > 0 {
		return min(seen+seen/4, million)
	}
	return million
}

// saw takes a text of so many bytes that became so many tokens.
func (r *ratios) saw(model string, bytes, tokens int64) {
	if bytes < leastText || tokens <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]int64{}
	}
	r.all[model] = max(r.all[model], min(tokens*million/bytes+1, million))
}

// inputBound is the most tokens that a request can be: no token is less than a byte.
func (r *ratios) inputBound(model string, q *request) int64 {
	text := q.textBytes()
	bound := text*r.of(model)/million + 1 + perMessage*q.seen.messages + perImage*q.seen.images
	return min(int64(len(q.body)), bound) + perImage*q.seen.remote
}

// cost returns what tokens cost, in billionths, rounded up. Without a price it is 0.
func cost(u Usage, p *catalog.Price) int64 {
	if p == nil {
		return 0
	}
	plain := max(u.Input-u.Cached-u.CacheWrite, 0)
	var high, low uint64
	for _, part := range [][2]int64{{plain, p.Input}, {u.Cached, p.Cached}, {u.CacheWrite, p.CacheWrite}, {u.Output, p.Output}} {
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

// worst returns the most that a request can take, and what that would cost.
func (r *ratios) worst(model string, q *request, p *catalog.Price) ledger.Amount {
	u := Usage{Input: r.inputBound(model, q), Output: q.output()}
	if p != nil && p.CacheWrite > p.Input {
		u.CacheWrite = u.Input
	}
	return ledger.Amount{Tokens: u.Input + u.Output, Cost: cost(u, p)}
}
