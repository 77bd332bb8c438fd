package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPauseTakesItsTimeOrEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { end(why) })
		began := time.Now()
		for _, c := range []struct {
			wait, until time.Duration
			want        error
		}{{0, 0, nil}, {-1, 0, nil}, {time.Second, time.Second, nil}, {time.Hour, time.Minute, why}, {0, time.Minute, why}} {
			if err := For(ctx, c.wait); !errors.Is(err, c.want) || time.Since(began) != c.until {
				t.Errorf("%s: %v after %s", c.wait, err, time.Since(began))
			}
		}
	})
}

func TestAnEndIsOverWhenItsChannelIsClosed(t *testing.T) {
	end := make(chan struct{})
	if Over(end) {
		t.Error("it is over before")
	}
	close(end)
	if !Over(end) {
		t.Error("it isn't over after")
	}
}

func TestANotifierWakesThoseWhoWaitedAndNobodyAfterThem(t *testing.T) {
	var news Notifier
	news.Notify() // nobody waits
	first, second := news.After(), news.After()
	if Over(first) || Over(second) {
		t.Fatal("somebody was woken before there was news")
	}
	news.Notify()
	if !Over(first) || !Over(second) {
		t.Fatal("somebody sleeps on")
	}
	if Over(news.After()) {
		t.Error("old news wakes who came after it")
	}
}
