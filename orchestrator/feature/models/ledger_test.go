package models

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// page is the books in memory.
type page struct {
	rows []store.ModelCall
	full error
}

func (p *page) Add(_ context.Context, _ string, c store.ModelCall) (int64, error) {
	if p.full != nil {
		return 0, p.full
	}
	c.N = int64(len(p.rows) + 1)
	p.rows = append(p.rows, c)
	return c.N, nil
}

func (p *page) Save(_ context.Context, _ string, c store.ModelCall) error {
	p.rows[c.N-1] = c
	return p.full
}

func (p *page) List(_ context.Context, _ string, after int64, _ int) ([]store.ModelCall, error) {
	return p.rows[after:min(after+2, int64(len(p.rows)))], nil
}

func (p *page) SettleAll(context.Context) error { return nil }

func (p *page) Spending(context.Context, string) ([]store.ModelSpending, error) { return nil, nil }

// host leads nothing: it hears of the calls that are told.
type host struct {
	run.Host
	told []api.ModelCall
}

func (h *host) Note(e run.Event) { h.told = append(h.told, e.Data.(api.ModelCall)) }

// accountOf is the account of a run r in one process, with a limit of tokens.
func accountOf(t *testing.T, p *page, limit int64) (*account, *host) {
	t.Helper()
	h := &host{}
	r := &run.Run{ID: "r", Dir: t.TempDir(), Lineage: run.Lineage{Root: "r", Path: []handoff.Step{{Budgets: capsule.Budgets{Tokens: limit}}}}}
	r.LedBy(h, nil)
	return joined(t, r, p), h
}

// joined is the account of a run over books.
func joined(t *testing.T, r *run.Run, calls feature.ModelCalls) *account {
	t.Helper()
	f := New(Models{})
	if err := f.Init(feature.Process{ModelCalls: calls, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return f.Join(t.Context(), r, nil).(*account)
}

func TestWhatCannotBeStoredIsNotAskedAndSetsNothingAside(t *testing.T) {
	p := &page{full: errors.New("disk full")}
	a, _ := accountOf(t, p, 100)
	a.Open()
	defer a.Close()
	if _, err := (ledgerStore{a}).Reserve(t.Context(), gateway.Call{ID: "x"}, ledger.Amount{Tokens: 80}); !errors.Is(err, p.full) {
		t.Errorf("%v", err)
	}
	if spent, reserved := a.ledger.Spent("r"); spent != (ledger.Amount{}) || reserved != (ledger.Amount{}) {
		t.Errorf("%+v is spent, %+v is set aside", spent, reserved)
	}
	if a.Conclude(); a.run.Record.Models != nil {
		t.Errorf("%+v", a.run.Record.Models)
	}
}

// The next process charges what was settled as it was, and in full what wasn't.
func TestTheBooksTellTheNextProcessWhatWasSpent(t *testing.T) {
	p := &page{}
	a, _ := accountOf(t, p, 1000)
	a.Open()
	for n, c := range []gateway.Call{{ID: "x", Model: "m"}, {ID: "y", Model: "m"}, {ID: "y", Model: "m", Again: true}} {
		held, err := ledgerStore{a}.Reserve(t.Context(), c, ledger.Amount{Tokens: 100, Cost: 7})
		if err != nil {
			t.Fatal(err)
		}
		if n == 2 { // the process dies
			break
		}
		brokenOff := c.ID == "y"
		if err := held.Settle(t.Context(), c, gateway.Spent{Amount: ledger.Amount{Tokens: 30, Cost: 2}, Usage: gateway.Usage{Input: 30}, Estimated: brokenOff}); err != nil {
			t.Fatal(err)
		}
	}
	next, h := accountOf(t, p, 1000)
	var of []string
	next.restore(t.Context(), p, func(_ context.Context, root, id string) (ledger.Amount, error) {
		of = append(of, root, id)
		return ledger.Amount{Tokens: 160, Cost: 11}, nil
	})
	next.Conclude()
	want := &api.ModelUsage{Calls: 2, Estimated: 1, Tokens: api.ModelTokens{Input: 60}, Charged: 160, Cost: 11}
	if diff := cmp.Diff(want, next.run.Record.Models); diff != "" || !cmp.Equal(of, []string{"r", "r"}) {
		t.Errorf("of %q: %s", of, diff)
	}
	listed, err := ReadCalls(next.run.Dir)
	if diff := cmp.Diff(h.told, listed); diff != "" || err != nil || len(listed) != 2 {
		t.Fatalf("%+v %v %s", listed, err, diff)
	}
	if x, y := listed[0], listed[1]; x.Charged != 30 || x.Estimated || y.Charged != 130 || !y.Estimated || y.Attempts != 2 || y.N != 2 {
		t.Errorf("%+v", listed)
	}
	for _, c := range []struct {
		after int64
		limit int
		want  []api.ModelCall
		next  *int64
	}{
		{0, 1, listed[:1], &listed[0].N},
		{1, 1, listed[1:], nil},
		{1, 0, listed[1:], nil},
		{0, 2, listed, nil},
		{2, 1, []api.ModelCall{}, nil},
	} {
		page, err := ReadCallPage(next.run.Dir, c.after, c.limit)
		if diff := cmp.Diff(api.ModelCallPage{Calls: c.want, Next: c.next}, page); diff != "" || err != nil {
			t.Errorf("after %d: %v %s", c.after, err, diff)
		}
	}
}

func TestTheNumberOfALineIsReadWithoutTheRest(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(exchange{ModelCall: api.ModelCall{N: 12}})
	if err != nil || numberOf(raw) != 12 {
		t.Errorf("%d of %s, %v", numberOf(raw), raw, err)
	}
	for _, other := range []string{"", "{", `{"n":1`, `{"n":x,`, `{"at":1,"n":2}`} {
		if n := numberOf([]byte(other)); n != 0 {
			t.Errorf("%d of %s", n, other)
		}
	}
}

func TestOnlyTheTopOfATreeHasTheOperatorsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		parent      string
		own, budget int64
		takes       int64
	}{
		"the operator's is smaller": {own: 100, budget: 50, takes: 50},
		"its own is smaller":        {own: 50, budget: 100, takes: 50},
		"it has none of its own":    {budget: 50, takes: 50},
		"a call":                    {parent: "top", own: 100, budget: 50, takes: 100},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := accountOf(t, &page{}, c.own)
			a.run.Lineage.Parent = c.parent
			a.payers.set(ledger.Amount{Tokens: c.budget}, Quotas{})
			a.Open()
			if _, err := a.ledger.Reserve(t.Context(), ledger.Amount{Tokens: c.takes + 1}, "r"); err == nil {
				t.Error("it may have more")
			}
			if _, err := a.ledger.Reserve(t.Context(), ledger.Amount{Tokens: c.takes}, "r"); err != nil {
				t.Error(err)
			}
		})
	}
}
