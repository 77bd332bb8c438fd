package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

func TestTheSameKeyHasTheSameAnswer(t *testing.T) {
	provider := newDouble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		answering(w, strings.Replace(plainAnswer, `"1"`, fmt.Sprintf(`"%d"`, n), 1))
	})
	kept := newBooks(ledger.Amount{})
	b := newBench(t, provider.URL)
	b.session.Ledger = kept
	b.serve()
	body := bodies["/chat/completions"]
	var all sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		all.Go(func() { answers[i] = b.ask("POST", "/chat/completions", body, "Idempotency-Key: k").body })
	}
	all.Wait()
	for _, a := range answers {
		if a != answers[0] {
			t.Errorf("%q", answers)
		}
	}
	if spent, _ := kept.spent(); spent.Tokens != 10 || len(provider.requests()) != 1 {
		t.Errorf("paid %+v for %d requests", spent, len(provider.requests()))
	}
	b.ask("POST", "/chat/completions", body+" ", "Idempotency-Key: k").problem(t, 422, RuleIdempotency)
	b.ask("POST", "/chat/completions", body, "Idempotency-Key: "+strings.Repeat("k", 256)).problem(t, 400, RuleIdempotency)
	if a := b.ask("POST", "/chat/completions", body, "Idempotency-Key: l"); a.body == answers[0] {
		t.Error("another key has the same answer")
	}
}

// keptFirst is a ledger that notes, when a request is settled, what is kept under its key.
type keptFirst struct {
	answers *Memory
	found   []string
}

func (k *keptFirst) Reserve(context.Context, Call, ledger.Amount) (Hold, error) { return k, nil }

func (k *keptFirst) Settle(ctx context.Context, c Call, _ Spent) error {
	a, _, _ := k.answers.Find(ctx, c.Key)
	k.found = append(k.found, string(slices.Concat(a.Chunks...)))
	return nil
}

// A process that dies between the two would ask, and pay, twice, if it had settled first.
func TestAnAnswerIsKeptBeforeItIsSettled(t *testing.T) {
	plain := bodies["/chat/completions"]
	for name, c := range map[string]struct {
		body   string
		answer func(int, http.ResponseWriter, *http.Request)
	}{
		"plain":  {plain, well},
		"stream": {streaming(plain), func(_ int, w http.ResponseWriter, _ *http.Request) { stream(w, events["/chat/completions"]...) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, newDouble(t, c.answer).URL)
			books := &keptFirst{answers: NewMemory()}
			b.session.Ledger, b.session.Answers = books, books.answers
			b.serve()
			a := b.ask("POST", "/chat/completions", c.body, "Idempotency-Key: k")
			if a.status != 200 || a.body == "" || !slices.Equal(books.found, []string{a.body}) {
				t.Errorf("%d %q: kept was %q", a.status, a.body, books.found)
			}
			if again := b.ask("POST", "/chat/completions", c.body, "Idempotency-Key: k"); again.body != a.body || again.header.Get("Content-Type") != a.header.Get("Content-Type") {
				t.Errorf("%q %v", again.body, again.header)
			}
		})
	}
}

func TestAFailedAnswerIsNotKeptUnderItsKey(t *testing.T) {
	provider := newDouble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 {
			w.WriteHeader(400)
			return
		}
		well(n, w, r)
	})
	b := newBench(t, provider.URL).serve()
	b.ask("POST", "/chat/completions", bodies["/chat/completions"], "Idempotency-Key: k").problem(t, 400, RuleProvider)
	if a := b.ask("POST", "/chat/completions", bodies["/chat/completions"], "Idempotency-Key: k"); a.status != 200 {
		t.Error(a.body)
	}
}

func TestACacheIsAskedFirst(t *testing.T) {
	provider := newDouble(t, well)
	b := newBench(t, provider.URL)
	b.session.Cache = NewMemory()
	b.serve()
	first := b.ask("POST", "/chat/completions", bodies["/chat/completions"])
	second := b.ask("POST", "/chat/completions", " "+bodies["/chat/completions"])
	e := b.told.last(t, 2)
	if first.body != second.body || len(provider.requests()) != 1 || e.Source != FromCache || e.Spent.Amount != (ledger.Amount{}) {
		t.Errorf("%+v", e)
	}
}

func TestWhatIsRecordedIsReplayedWithoutAConnection(t *testing.T) {
	ok := events["/chat/completions"]
	provider := newDouble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 0:
			stream(w, ok...)
		case 1:
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{}}`)
		default:
			well(n, w, r)
		}
	})
	var tape bytes.Buffer
	b := newBench(t, provider.URL)
	b.session.Record = cassette.NewRecorder(&tape)
	b.serve()
	body := bodies["/chat/completions"]
	asked := []string{streaming(body), body, body, bodies["/messages"]}
	paths := []string{"/chat/completions", "/chat/completions", "/chat/completions", "/messages"}
	var want []answered
	for i := range asked {
		want = append(want, b.ask("POST", paths[i], asked[i]))
	}
	b.server.Close() // it waits until each answer is recorded
	before := len(provider.requests())
	player, err := cassette.Read("tape", &tape)
	must(t, err)
	r := newBench(t, provider.URL)
	r.session.Replay = player
	r.serve()
	for i := range asked {
		got := r.ask("POST", paths[i], asked[i])
		if got.status != want[i].status || got.body != want[i].body || got.header.Get("Content-Type") != want[i].header.Get("Content-Type") {
			t.Errorf("%d: %d %s, want %d %s", i, got.status, got.body, want[i].status, want[i].body)
		}
	}
	p := r.ask("POST", "/chat/completions", strings.Replace(body, "Hi", "Ho", 1)).problem(t, 400, RuleReplay)
	if !strings.Contains(p.Error.Message, "/messages/0/content") || len(provider.requests()) != before {
		t.Errorf("%+v", p)
	}
}
