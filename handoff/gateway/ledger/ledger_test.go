package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func reserve(t *testing.T, tree *Tree, id string, tokens int64) *Hold {
	t.Helper()
	h, err := tree.Reserve(t.Context(), Amount{Tokens: tokens}, id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// later reserves beside the test, and returns where its outcome comes.
func later(ctx context.Context, tree *Tree, id string, tokens int64) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := tree.Reserve(ctx, Amount{Tokens: tokens}, id)
		done <- err
	}()
	return done
}

// waiters waits until so many wait.
func waiters(t *testing.T, tree *Tree, n int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d wait", n), func() bool {
		tree.mu.Lock()
		defer tree.mu.Unlock()
		return len(tree.waiting) == n
	})
}

func TestWhatCanNeverFitIsRefusedAtOnce(t *testing.T) {
	tree := New()
	tree.Open("root", "", Amount{Tokens: 100})
	tree.Open("child", "root", Amount{Cost: 5})
	reserve(t, tree, "child", 60).Settle(Amount{Tokens: 60})
	var excess *Excess
	if _, err := tree.Reserve(t.Context(), Amount{Tokens: 41}, "child"); !errors.As(err, &excess) || *excess != (Excess{Account: "root", Limit: 100, Spent: 60, Needed: 41}) {
		t.Errorf("%+v", err)
	}
	if _, err := tree.Reserve(t.Context(), Amount{Cost: 6}, "child"); !errors.As(err, &excess) || !excess.Cost || excess.Account != "child" {
		t.Errorf("%+v", err)
	}
	reserve(t, tree, "child", 40)
	reserve(t, tree, "nobody", 1000)
}

func TestWhatWouldFitWaitsForOthersToSettle(t *testing.T) {
	tree := New()
	tree.Open("root", "", Amount{Tokens: 100})
	first := reserve(t, tree, "root", 80)
	second := later(t.Context(), tree, "root", 50)
	waiters(t, tree, 1)
	first.Settle(Amount{Tokens: 50})
	first.Settle(Amount{Tokens: 50}) // counts once
	if err := <-second; err != nil {
		t.Error(err)
	}
	if spent, reserved := tree.Spent("root"); spent.Tokens != 50 || reserved.Tokens != 50 {
		t.Errorf("%+v %+v", spent, reserved)
	}
}

func TestWhatCanFitNoMoreIsRefusedWhileItWaits(t *testing.T) {
	tree := New()
	tree.Open("root", "", Amount{Tokens: 100})
	first := reserve(t, tree, "root", 80)
	second := later(t.Context(), tree, "root", 50)
	waiters(t, tree, 1)
	first.Settle(Amount{Tokens: 80})
	var excess *Excess
	if err := <-second; !errors.As(err, &excess) {
		t.Error(err)
	}
}

func TestASmallOneDoesNotPassALargeOneByThatWaitsForTheSame(t *testing.T) {
	tree := New()
	tree.Open("root", "", Amount{})
	tree.Open("a", "root", Amount{Tokens: 100})
	tree.Open("b", "root", Amount{Tokens: 100})
	first := reserve(t, tree, "a", 50)
	large := later(t.Context(), tree, "a", 90)
	waiters(t, tree, 1)
	small := later(t.Context(), tree, "a", 10)
	waiters(t, tree, 2)
	reserve(t, tree, "b", 10) // has nothing to do with it
	first.Settle(Amount{})
	if err := errors.Join(<-large, <-small); err != nil {
		t.Error(err)
	}
}

func TestWhoeverWaitsCanGiveUp(t *testing.T) {
	tree := New()
	tree.Open("root", "", Amount{Tokens: 100})
	first := reserve(t, tree, "root", 50)
	ctx, cancel := context.WithCancelCause(t.Context())
	large := later(ctx, tree, "root", 90)
	waiters(t, tree, 1)
	small := later(t.Context(), tree, "root", 20)
	waiters(t, tree, 2)
	why := errors.New("enough")
	cancel(why)
	if err := <-large; !errors.Is(err, why) {
		t.Error(err)
	}
	if err := <-small; err != nil {
		t.Error(err)
	}
	first.Settle(Amount{Tokens: 1})
	if spent, reserved := tree.Spent("root"); spent.Tokens != 1 || reserved.Tokens != 20 {
		t.Errorf("%+v %+v", spent, reserved)
	}
}

func TestWhatAnEarlierProcessSpentCountsAllTheWayUp(t *testing.T) {
	tree := New()
	tree.Open("root", "", Amount{Tokens: 100})
	tree.Open("child", "root", Amount{})
	tree.Restore("child", Amount{Tokens: 99, Cost: 5})
	if _, err := tree.Reserve(t.Context(), Amount{Tokens: 2}, "root"); err == nil {
		t.Error("it was forgotten")
	}
	tree.Close("child")
	if spent, _ := tree.Spent("root"); spent != (Amount{99, 5}) {
		t.Errorf("%+v", spent)
	}
}

// 20 at once on 5 nested accounts: no limit is passed at any time, and all sums are exact.
func TestNoLimitIsPassedByManyAtOnce(t *testing.T) {
	for round := range 200 {
		random := rand.New(rand.NewPCG(14, uint64(round)))
		tree := New()
		var limits []Amount
		for i := range 5 {
			limits = append(limits, Amount{Tokens: 200 + random.Int64N(2000), Cost: 300 + random.Int64N(3000)})
			tree.Open(name(i), name(i-1), limits[i])
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var want [5]Amount
		for range 20 {
			at, worst := random.IntN(5), Amount{1 + random.Int64N(300), 1 + random.Int64N(400)}
			spent := Amount{random.Int64N(worst.Tokens + 1), random.Int64N(worst.Cost + 1)}
			all.Go(func() {
				h, err := tree.Reserve(t.Context(), worst, name(at))
				if err != nil {
					return
				}
				check(t, tree, limits)
				mu.Lock()
				for i := range at + 1 {
					want[i] = want[i].Plus(spent)
				}
				mu.Unlock()
				h.Settle(spent)
				check(t, tree, limits)
			})
		}
		all.Wait()
		for i := range 5 {
			if spent, reserved := tree.Spent(name(i)); spent != want[i] || reserved != (Amount{}) {
				t.Fatalf("round %d, %s: %+v, set aside %+v, want %+v", round, name(i), spent, reserved, want[i])
			}
		}
	}
}

func name(i int) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("run%d", i)
}

func check(t *testing.T, tree *Tree, limits []Amount) {
	for i, limit := range limits {
		spent, reserved := tree.Spent(name(i))
		if sum := spent.Plus(reserved); sum.Tokens > limit.Tokens || sum.Cost > limit.Cost {
			t.Errorf("%s: %+v of %+v", name(i), sum, limit)
		}
	}
}
