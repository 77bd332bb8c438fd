package ledger

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// windows are a day of 100 tokens and a month of 250.
func windows() []Window {
	return []Window{{Name: "day", Limit: Amount{Tokens: 100}, Ends: NextDay}, {Name: "month", Limit: Amount{Tokens: 250}, Ends: NextMonth}}
}

// spentIn is what is settled and set aside in the windows of the account "a", in tokens.
func spentIn(tree *Tree) (sums [][2]int64) {
	for _, w := range tree.Windows("a") {
		sums = append(sums, [2]int64{w.Spent.Tokens, w.Reserved.Tokens})
	}
	return sums
}

func TestAWindowBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at midnight, 2000-01-01
		tree := New()
		tree.OpenWindows("a", windows()...)
		for day := range 2 {
			reserve(t, tree, "a", 60).Settle(Amount{Tokens: 60})
			reserve(t, tree, "a", 40).Settle(Amount{Tokens: 40})
			_, err := tree.Reserve(t.Context(), Amount{Tokens: 1}, "a")
			next := time.Date(2000, 1, day+2, 0, 0, 0, 0, time.UTC)
			var excess *Excess
			if want := (Excess{Account: "a", Window: "day", Opens: next, Limit: 100, Spent: 100, Needed: 1}); !errors.As(err, &excess) || *excess != want {
				t.Errorf("%+v", err)
			}
			time.Sleep(time.Until(next))
		}
		reserve(t, tree, "a", 50).Settle(Amount{Tokens: 50})
		_, err := tree.Reserve(t.Context(), Amount{Tokens: 1}, "a")
		var excess *Excess
		if next := time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC); !errors.As(err, &excess) || excess.Window != "month" || !excess.Opens.Equal(next) {
			t.Errorf("%+v", err)
		}
	})
}

// What is set aside before midnight counts on that day, also what of it is settled after it; whoever waits is decided
// of anew then.
func TestWhatWaitsIsDecidedOfWhenTheWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := New()
		tree.OpenWindows("a", windows()...)
		time.Sleep(23 * time.Hour)
		yesterday := reserve(t, tree, "a", 80)
		began := time.Now()
		later, err := tree.Reserve(t.Context(), Amount{Tokens: 50}, "a")
		if err != nil || time.Since(began) != time.Hour || !yesterday.At.Equal(began) || !later.At.Equal(time.Now()) {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		if got := spentIn(tree); !cmp.Equal(got, [][2]int64{{0, 50}, {0, 130}}) {
			t.Errorf("%v", got)
		}
		yesterday.Settle(Amount{Tokens: 70})
		later.Settle(Amount{Tokens: 5})
		if got := spentIn(tree); !cmp.Equal(got, [][2]int64{{5, 0}, {75, 0}}) {
			t.Errorf("%v", got)
		}
	})
}

func TestAWindowGetsAnotherLimitWhileCallsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := New()
		tree.OpenWindows("a", Window{Name: "day", Limit: Amount{Tokens: 100}, Spent: Amount{Tokens: 30}, Ends: NextDay})
		first := reserve(t, tree, "a", 60)
		second := make(chan error, 1)
		go func() {
			_, err := tree.Reserve(t.Context(), Amount{Tokens: 50}, "a")
			second <- err
		}()
		synctest.Wait()
		tree.OpenWindows("a", Window{Name: "day", Limit: Amount{Tokens: 140}, Spent: Amount{Tokens: 999}, Ends: NextDay})
		if err := <-second; err != nil {
			t.Error(err)
		}
		tree.OpenWindows("a", Window{Name: "day", Limit: Amount{Tokens: 20}, Ends: NextDay})
		if _, err := tree.Reserve(t.Context(), Amount{Tokens: 1}, "a"); err == nil {
			t.Error("it has room")
		}
		first.Settle(Amount{Tokens: 60})
		if got := spentIn(tree); !cmp.Equal(got, [][2]int64{{90, 50}}) {
			t.Errorf("%v", got)
		}
	})
}

// Of a run, of its team and of its token: each bounds.
func TestAllAccountsOfACallBound(t *testing.T) {
	tree := New()
	tree.Open("run", "", Amount{Tokens: 500})
	tree.OpenWindows("team", Window{Name: "day", Limit: Amount{Tokens: 100}, Ends: NextDay})
	tree.OpenWindows("token", Window{Name: "day", Limit: Amount{Cost: 10}, Ends: NextDay})
	ids := []string{"run", "team", "token"}
	for amount, account := range map[Amount]string{{Tokens: 501}: "run", {Tokens: 101}: "team", {Tokens: 100, Cost: 11}: "token"} {
		var excess *Excess
		if _, err := tree.Reserve(t.Context(), amount, ids...); !errors.As(err, &excess) || excess.Account != account {
			t.Errorf("%+v: %v", amount, err)
		}
	}
	held, err := tree.Reserve(t.Context(), Amount{Tokens: 100, Cost: 10}, ids...)
	if err != nil {
		t.Fatal(err)
	}
	held.Settle(Amount{Tokens: 7, Cost: 3})
	tree.Close("run")
	if got := tree.Windows("team"); got[0].Spent != (Amount{7, 3}) || got[0].Reserved != (Amount{}) {
		t.Errorf("%+v", got)
	}
}
