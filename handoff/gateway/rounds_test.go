package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// biller is a provider that keeps its own bill. What it charges is told in the request.
type biller struct {
	mu   sync.Mutex
	bill ledger.Amount
}

// order is what a request of a round asks the biller for.
type order struct {
	Model     string `json:"model"`
	Messages  []any  `json:"messages"`
	MaxTokens int64  `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	In        int64  `json:"in"`
	Out       int64  `json:"out"`
	Hang      bool   `json:"hang"`
}

func (p *biller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o order
	_ = json.NewDecoder(r.Body).Decode(&o) // it was checked
	p.mu.Lock()
	p.bill = p.bill.Plus(ledger.Amount{Tokens: o.In + o.Out, Cost: o.In*1000 + o.Out*3000})
	p.mu.Unlock()
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, o.In, o.Out)
	switch {
	case o.Hang:
		stream(w, `data: {"choices":[{}]}`+"\n\n")
		hang(r)
	case o.Stream:
		stream(w, `data: {"choices":[{}]}`+"\n\n", `data: {"choices":[],`+usage+"}\n\n", "data: [DONE]\n\n")
	default:
		answering(w, `{"choices":[{}],`+usage+"}")
	}
}

// round is a tree of 5 nested runs, each with a server of its own.
type round struct {
	t       *testing.T
	tree    *ledger.Tree
	limits  []ledger.Amount
	servers []*httptest.Server
	mu      sync.Mutex
	guessed ledger.Amount // what is charged more than can be known
}

// watching is a ledger that looks at all limits whenever something changes.
type watching struct {
	*books
	round *round
}

func (l watching) Reserve(ctx context.Context, c Call, worst ledger.Amount) (Hold, error) {
	h, err := l.books.Reserve(ctx, c, worst)
	l.round.check()
	if err != nil {
		return nil, err
	}
	return watchingHold{h, l.round}, nil
}

type watchingHold struct {
	Hold
	round *round
}

func (h watchingHold) Settle(ctx context.Context, c Call, s Spent) error {
	err := h.Hold.Settle(ctx, c, s)
	if s.Estimated {
		h.round.mu.Lock()
		h.round.guessed = h.round.guessed.Plus(s.Amount)
		h.round.mu.Unlock()
	}
	h.round.check()
	return err
}

func (r *round) check() {
	for i, limit := range r.limits {
		spent, reserved := r.tree.Spent(runName(i))
		if sum := spent.Plus(reserved); limit.Tokens > 0 && sum.Tokens > limit.Tokens || limit.Cost > 0 && sum.Cost > limit.Cost {
			r.t.Errorf("%s has %+v of %+v", runName(i), sum, limit)
		}
	}
}

func runName(i int) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("run%d", i)
}

func TestManyCallsOfATreeNeverPassItsBudgets(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprintf("readers that hang up: %v", hangs), func(t *testing.T) {
			provider := &biller{}
			server := httptest.NewServer(provider)
			t.Cleanup(server.Close)
			t.Cleanup(server.CloseClientConnections)
			b := newBench(t, server.URL).serve()
			for n := range rounds {
				playRound(t, b, provider, rand.New(rand.NewPCG(14, uint64(n))), hangs)
				if t.Failed() {
					t.Fatalf("in round %d", n)
				}
			}
		})
	}
}

func playRound(t *testing.T, b *bench, provider *biller, random *rand.Rand, hangs bool) {
	r := &round{t: t, tree: ledger.New()}
	for i := range 5 {
		r.limits = append(r.limits, ledger.Amount{Tokens: 1500 + random.Int64N(6000), Cost: 2_000_000 + random.Int64N(20_000_000)})
		r.tree.Open(runName(i), runName(i-1), r.limits[i])
		s := b.session
		s.Run, s.Recorder, s.Ledger = runName(i), nil, watching{&books{tree: r.tree, id: runName(i)}, r}
		r.servers = append(r.servers, httptest.NewServer(b.gw.Handler(s)))
	}
	before := provider.billed()
	var all sync.WaitGroup
	for range 20 {
		at := random.IntN(5)
		o := order{Model: "m", Messages: []any{}, MaxTokens: 10 + random.Int64N(90), Stream: random.IntN(2) == 0, In: 10 + random.Int64N(70)} // no token is less than a byte
		o.Out = random.Int64N(o.MaxTokens + 1)
		o.Hang = hangs && random.IntN(3) == 0
		o.Stream = o.Stream || o.Hang
		all.Go(func() { askOnce(r.servers[at].URL, o) })
	}
	all.Wait()
	for _, s := range r.servers {
		s.Close()
	}
	r.compare(before, provider.billed())
}

// askOnce reads an answer to its end, or hangs up after the first event.
func askOnce(server string, o order) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	raw, _ := json.Marshal(o)                                                                                            // it can be written
	request, _ := http.NewRequestWithContext(ctx, "POST", server+"/v1/chat/completions", strings.NewReader(string(raw))) // it is one
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if o.Hang {
		_, _ = answer.Body.Read(make([]byte, 1)) // there may be none
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body) // as far as it comes
}

func (p *biller) billed() ledger.Amount {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bill
}

// compare holds the sums against the provider's bill: they are equal, or above it by no more
// than what is marked as estimated.
func (r *round) compare(before, after ledger.Amount) {
	r.t.Helper()
	bill := after.Minus(before)
	spent, reserved := r.tree.Spent(runName(0))
	over := spent.Minus(bill)
	if reserved != (ledger.Amount{}) || over.Tokens < 0 || over.Cost < 0 || over.Tokens > r.guessed.Tokens || over.Cost > r.guessed.Cost {
		r.t.Errorf("spent %+v, the bill is %+v, estimated %+v, set aside %+v", spent, bill, r.guessed, reserved)
	}
	if r.guessed == (ledger.Amount{}) && spent != bill {
		r.t.Errorf("spent %+v, the bill is %+v", spent, bill)
	}
}
