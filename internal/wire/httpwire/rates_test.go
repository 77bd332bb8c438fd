package httpwire

import (
	"fmt"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestARateIsTaken(t *testing.T) {
	t.Parallel()
	var r Rates
	now, of := time.Unix(1_700_000_000, 0), Rate{Minute: 6, Burst: 2}
	take := func(after time.Duration, key string, of Rate) error {
		return r.takeAt(now.Add(after), key, of, "too many")
	}
	for _, c := range []struct {
		after time.Duration
		key   string
		of    Rate
		wait  time.Duration // 0: it is taken
	}{
		{0, "a", of, 0},
		{0, "a", of, 0},
		{0, "a", of, 10 * time.Second},
		{0, "b", of, 0}, // another has its own
		{4 * time.Second, "a", of, 6 * time.Second},
		{10 * time.Second, "a", of, 0}, // who was refused has taken nothing
		{10 * time.Second, "a", Rate{}, 0},
		{10 * time.Second, "a", Rate{Minute: 60}, time.Second}, // changed: it begins with what is left
		{11 * time.Second, "a", Rate{Minute: 60}, 0},
	} {
		err := take(c.after, c.key, c.of)
		if c.wait == 0 && err != nil || c.wait > 0 && (!fault.Is(err, fault.Busy) || fault.Public(err).Retry != c.wait) {
			t.Errorf("%s after %s: %v, want to wait %s", c.key, c.after, err, c.wait)
		}
	}
	if p := ProblemOf(take(11*time.Second, "a", Rate{Minute: 60})); p.Status != 429 || p.RetryAfter() != "1" || !p.MayRetry() {
		t.Errorf("%+v", p)
	}
}

func TestRatesForgetWhoHasAllOfTheirs(t *testing.T) {
	t.Parallel()
	var r Rates
	now, of := time.Unix(1_700_000_000, 0), Rate{Minute: 1}
	if err := r.takeAt(now, "first", of, "too many"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * mostRates {
		_ = r.takeAt(now.Add(time.Duration(i)*time.Millisecond), fmt.Sprint(i), of, "too many")
		if len(r.byKey) > mostRates {
			t.Fatalf("%d keys are known", len(r.byKey))
		}
	}
	var few Rates
	_ = few.takeAt(now, "spent", of, "too many")
	for i := range mostRates - 1 {
		_ = few.takeAt(now.Add(-time.Hour), fmt.Sprint(i), of, "too many") // they have all of it at now
	}
	if _ = few.takeAt(now, "new", of, "too many"); len(few.byKey) != 2 {
		t.Errorf("%d keys are known", len(few.byKey))
	}
	if err := few.takeAt(now, "spent", of, "too many"); err == nil {
		t.Error("who had nothing left was forgotten")
	}
}
