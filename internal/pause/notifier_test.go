package pause

import "testing"

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
