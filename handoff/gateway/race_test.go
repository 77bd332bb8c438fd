package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

type answer func(n int, w http.ResponseWriter, r *http.Request)

// worstOfRace is what each of a race's requests can take at most: its bytes, what is added, and its answer.
func worstOfRace(body string) int64 { return int64(len(body)) + added + 100 }

// racing is a bench whose model m is asked of as many providers, called p, q and r, in an order.
func racing(t *testing.T, order catalog.Order, limit ledger.Amount, answers ...answer) (b *bench, kept *books, doubles []*double) {
	b, kept = newBench(t, ""), newBooks(limit)
	b.session.Ledger = kept
	m := b.catalog.Models["m"]
	m.Order, m.Use = order, nil
	for i, a := range answers {
		d, name := newDouble(t, a), string("pqr"[i])
		b.catalog.Providers[name] = catalog.Provider{Kind: catalog.Compatible, BaseURL: d.URL, AnyField: true, Dialects: catalog.Dialects()}
		m.Use = append(m.Use, catalog.Use{Provider: name, Model: "up-" + name})
		doubles = append(doubles, d)
	}
	b.catalog.Models["m"] = m
	return b, kept, doubles
}

// spentIs fails unless so many tokens are spent, and nothing is set aside any more.
func (b *books) spentIs(t *testing.T, want int64) {
	t.Helper()
	if spent, reserved := b.spent(); spent.Tokens != want || reserved != (ledger.Amount{}) {
		t.Errorf("spent %+v, set aside %+v; want %d tokens", spent, reserved, want)
	}
}

func status(code int) answer {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestTheFirstToBeginWinsAndTheOtherIsCutOffAndPaidFor(t *testing.T) {
	for path, ok := range events {
		for _, slow := range []string{"says nothing", "has only opened its answer"} {
			t.Run(strings.TrimPrefix(path, "/")+"/the other "+slow, func(t *testing.T) {
				t.Parallel()
				waits, gone := make(chan struct{}), make(chan struct{})
				b, kept, doubles := racing(t, catalog.Race, ledger.Amount{}, func(_ int, w http.ResponseWriter, r *http.Request) {
					if slow != "says nothing" {
						stream(w, beforeWords(ok, path))
					}
					close(waits)
					hang(r)
					close(gone)
				}, func(_ int, w http.ResponseWriter, _ *http.Request) {
					<-waits
					stream(w, ok...)
				})
				body := streaming(bodies[path])
				a := b.serve().ask("POST", path, body)
				<-gone // its connection was closed
				e := b.told.last(t, 1)
				if a.status != 200 || !strings.Contains(a.body, "Grüße") || e.Call.Provider != "q" || e.Call.Upstream != "up-q" || e.Raced != "p" || e.Attempts != 2 {
					t.Errorf("%d %s %+v", a.status, a.body, e)
				}
				worst := int64(len(body)) + added + e.Call.MaxTokens
				kept.spentIs(t, 10+worst)
				if e.Spent.Amount.Tokens != 10+worst || !e.Spent.Estimated || e.Spent.Usage.Output != 3 {
					t.Errorf("told %+v", e.Spent)
				}
				if len(doubles[0].requests()) != 1 || len(doubles[1].requests()) != 1 {
					t.Error("a provider was asked twice")
				}
			})
		}
	}
}

func TestARaceThatOneOfTwoCanWin(t *testing.T) {
	t.Parallel()
	body := bodies["/chat/completions"]
	for name, c := range map[string]struct {
		first    answer
		attempts int
	}{
		"the other's key is bad":          {status(401), 2},
		"the other refuses the request":   {status(400), 2},
		"the other fails again and again": {status(500), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := make(chan struct{})
			b, kept, doubles := racing(t, catalog.Race, ledger.Amount{}, func(n int, w http.ResponseWriter, r *http.Request) {
				c.first(n, w, r)
				if n == c.attempts-2 {
					close(failed)
				}
			}, func(n int, w http.ResponseWriter, r *http.Request) {
				<-failed
				well(n, w, r)
			})
			a := b.serve().ask("POST", "/chat/completions", body)
			if e := b.told.last(t, 1); a.body != plainAnswer || e.Call.Provider != "q" || e.Attempts > c.attempts || e.Spent.Usage.Input != 7 {
				t.Errorf("%d %s %+v", a.status, a.body, e)
			}
			// the last failure may still be on its way when the other one wins: then it is one that was sent
			if spent, reserved := kept.spent(); reserved.Tokens != 0 || spent.Tokens != 10 && spent.Tokens != 10+worstOfRace(body) {
				t.Errorf("%+v %+v", spent, reserved)
			}
			if len(doubles[1].requests()) != 1 {
				t.Error("the winner was asked again")
			}
		})
	}
}

func TestARaceThatBothLose(t *testing.T) {
	t.Parallel()
	body := bodies["/chat/completions"]
	t.Run("the next provider is asked", func(t *testing.T) {
		t.Parallel()
		b, kept, _ := racing(t, catalog.Race, ledger.Amount{}, status(500), status(401), well)
		a := b.serve().ask("POST", "/chat/completions", body)
		if e := b.told.last(t, 1); a.body != plainAnswer || e.Call.Provider != "r" || e.Raced != "" || e.Attempts != 5 {
			t.Errorf("%d %s %+v", a.status, a.body, e)
		}
		kept.spentIs(t, 10)
	})
	t.Run("there is no other", func(t *testing.T) {
		t.Parallel()
		b, kept, _ := racing(t, catalog.Race, ledger.Amount{}, status(401), status(500))
		b.serve().ask("POST", "/chat/completions", body).problem(t, 502, RuleProvider)
		kept.spentIs(t, 0)
	})
	t.Run("both may charge", func(t *testing.T) {
		t.Parallel()
		html := func(_ int, w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }
		b, kept, _ := racing(t, catalog.Race, ledger.Amount{}, html, html, well)
		if a := b.serve().ask("POST", "/chat/completions", body); a.body != plainAnswer || !b.told.last(t, 1).Call.Again {
			t.Error(a.body)
		}
		kept.spentIs(t, 10+2*worstOfRace(body))
	})
	t.Run("what one says of the request is the answer", func(t *testing.T) {
		t.Parallel()
		b, kept, doubles := racing(t, catalog.Race, ledger.Amount{}, status(400), status(500), well)
		b.serve().ask("POST", "/chat/completions", body).problem(t, 400, RuleProvider)
		if len(doubles[2].requests()) > 0 {
			t.Error("the next one is asked")
		}
		kept.spentIs(t, 0)
	})
}

func TestABudgetForOneRequestHasProvidersAskedInTurn(t *testing.T) {
	t.Parallel()
	body := bodies["/chat/completions"]
	one := ledger.Amount{Tokens: 2*worstOfRace(body) - 1}
	b, kept, doubles := racing(t, catalog.Race, one, well, well)
	a := b.serve().ask("POST", "/chat/completions", body)
	if e := b.told.last(t, 1); a.body != plainAnswer || e.Call.Provider != "p" || e.Raced != "" || e.Attempts != 1 || len(doubles[1].requests()) > 0 {
		t.Errorf("%d %s %+v", a.status, a.body, e)
	}
	kept.spentIs(t, 10)

	b, kept, _ = racing(t, catalog.Race, one, status(401), well)
	if a := b.serve().ask("POST", "/chat/completions", body); a.body != plainAnswer || b.told.last(t, 1).Call.Provider != "q" {
		t.Error(a.body)
	}
	kept.spentIs(t, 10)

	b, kept, _ = racing(t, catalog.Race, ledger.Amount{Tokens: worstOfRace(body) - 1}, well, well)
	b.serve().ask("POST", "/chat/completions", body).problem(t, 402, RuleTokens)
	kept.spentIs(t, 0)
}

// A provider without a free place is waited for, and who loses there was sent nothing.
func TestARacerThatWaitsForAPlacePaysNothing(t *testing.T) {
	t.Parallel()
	b, kept, doubles := racing(t, catalog.Race, ledger.Amount{}, well, well)
	q := b.catalog.Providers["q"]
	q.Concurrency = 1
	b.catalog.Providers["q"] = q
	b.serve()
	leave, err := b.gw.gate("provider q").enter(t.Context(), "another", 0)
	must(t, err)
	a := b.ask("POST", "/chat/completions", bodies["/chat/completions"])
	if e := b.told.last(t, 1); a.body != plainAnswer || e.Call.Provider != "p" || e.Raced != "" || e.Attempts != 1 || len(doubles[1].requests()) > 0 {
		t.Errorf("%d %s %+v", a.status, a.body, e)
	}
	kept.spentIs(t, 10)
	leave(0)
	if leave, err = b.gw.gate("provider q").enter(t.Context(), "another", 0); err != nil {
		t.Error("who lost still stands at the gate")
	}
	leave(0)
}

func TestBothMayAnswerAtOnce(t *testing.T) {
	t.Parallel()
	body := bodies["/chat/completions"]
	b, kept, _ := racing(t, catalog.Race, ledger.Amount{}, well, well)
	b.serve()
	for range 20 {
		before, _ := kept.spent()
		if a := b.ask("POST", "/chat/completions", body); a.body != plainAnswer {
			t.Fatal(a.body)
		}
		spent, reserved := kept.spent()
		took := spent.Minus(before).Tokens // the loser never sent, answered too, or was cut off
		if reserved.Tokens != 0 || took != 10 && took != 20 && took != 10+worstOfRace(body) {
			t.Errorf("%d tokens, %+v", took, reserved)
		}
	}
}

func TestTheEndOfARunEndsBothRacers(t *testing.T) {
	t.Parallel()
	waits, gone := make(chan struct{}, racers), make(chan struct{}, racers)
	hangs := func(_ int, _ http.ResponseWriter, r *http.Request) {
		waits <- struct{}{}
		hang(r)
		gone <- struct{}{}
	}
	b, kept, doubles := racing(t, catalog.Race, ledger.Amount{}, hangs, hangs, well)
	b.serve()
	ctx, cancel := context.WithCancel(t.Context())
	body := bodies["/chat/completions"]
	r, err := http.NewRequestWithContext(ctx, "POST", b.server.URL+"/chat/completions", strings.NewReader(body))
	must(t, err)
	go func() {
		<-waits
		<-waits
		cancel()
	}()
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Error("it was answered")
	}
	<-gone
	<-gone
	if e := b.told.last(t, 1); e.Attempts != 2 || len(doubles[2].requests()) > 0 {
		t.Errorf("%+v", e)
	}
	kept.spentIs(t, 2*worstOfRace(body))
}

// A script in the place of all providers gives one answer to a request, and a key has one, too.
func TestARaceTakesOneAnswer(t *testing.T) {
	t.Parallel()
	b, _, doubles := racing(t, catalog.Race, ledger.Amount{}, well, well)
	b.session.Script = scriptOf(t, "[{text: one}, {text: two}]")
	b.serve()
	for _, want := range []string{"one", "two"} {
		if a := b.ask("POST", "/chat/completions", bodies["/chat/completions"]); !strings.Contains(a.body, want) {
			t.Errorf("%s, not %s", a.body, want)
		}
	}
	b.session.Script = nil
	b.serve()
	for range 2 {
		b.ask("POST", "/chat/completions", bodies["/chat/completions"], "Idempotency-Key: k")
	}
	if e := b.told.last(t, 4); e.Source != FromKey || len(doubles[0].requests()) > 1 || len(doubles[1].requests()) > 1 {
		t.Errorf("%+v", e)
	}
}

func TestTheCheapestIsAskedFirst(t *testing.T) {
	t.Parallel()
	cheap, dear := catalog.Price{Input: 1e9, Output: 1e9, Cached: 1e9, CacheWrite: 1e9}, catalog.Price{Input: 2e9, Output: 2e9, Cached: 2e9, CacheWrite: 2e9}
	asking, answering := catalog.Price{Input: 9e9}, catalog.Price{Output: 9e9}
	body, long := bodies["/chat/completions"], chat(`{"type":"text","text":"`+strings.Repeat("x", 100_000)+`"}`)
	for name, c := range map[string]struct {
		prices map[string]catalog.Price
		body   string
		most   int64
		want   string
	}{
		"by their prices":                        {map[string]catalog.Price{"p": dear, "q": dear, "r": cheap}, body, 100, "r p q"},
		"without a price comes last":             {map[string]catalog.Price{"q": dear, "r": cheap}, body, 100, "r q p"},
		"nobody has one":                         {nil, body, 100, "p q r"},
		"for the request at hand, a long one":    {map[string]catalog.Price{"p": asking, "q": answering, "r": dear}, long, 100, "q r p"},
		"for the request at hand, a long answer": {map[string]catalog.Price{"q": answering, "p": dear, "r": asking}, body, 100_000, "r p q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			fails := func(name string) answer {
				return func(_ int, w http.ResponseWriter, _ *http.Request) {
					asked = append(asked, name)
					w.WriteHeader(401)
				}
			}
			b, _, _ := racing(t, catalog.Cheapest, ledger.Amount{}, fails("p"), fails("q"), fails("r"))
			m := b.catalog.Models["m"]
			m.Prices, m.MaxOutput = map[catalog.Use]catalog.Price{}, c.most
			for name, p := range c.prices {
				m.Prices[catalog.Use{Provider: name, Model: "up-" + name}] = p
			}
			b.catalog.Models["m"] = m
			b.serve().ask("POST", "/chat/completions", c.body).problem(t, 502, RuleKey)
			if got := strings.Join(asked, " "); got != c.want {
				t.Errorf("asked %s, not %s", got, c.want)
			}
		})
	}
}

// What a provider takes is charged by its own price, and the worst is that of the dearest.
func TestAProviderIsPaidByItsOwnPrice(t *testing.T) {
	t.Parallel()
	b, kept, _ := racing(t, catalog.Cheapest, ledger.Amount{}, well, well)
	m := b.catalog.Models["m"]
	m.Prices = map[catalog.Use]catalog.Price{{Provider: "q", Model: "up-q"}: {Input: 1e6, Output: 1e6}}
	b.catalog.Models["m"] = m
	b.serve().ask("POST", "/chat/completions", bodies["/chat/completions"])
	if spent, _ := kept.spent(); b.told.last(t, 1).Call.Provider != "q" || spent.Cost != 10 {
		t.Errorf("%+v", spent)
	}
	m.Price = nil
	b.catalog.Models["m"] = m
	b.session.Limited = func() (bool, bool) { return true, true }
	b.serve().ask("POST", "/chat/completions", bodies["/chat/completions"]).problem(t, 402, RulePrice)
}
