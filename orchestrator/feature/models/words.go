package models

import (
	"crypto/rand"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
	"github.com/agent-on-demand/aod/internal/mask"
)

// words are what models say at the moment, by run: of runs that somebody follows, and of those of a conversation, whom
// somebody follows soon. Nothing of it is stored.
type words struct {
	mu sync.Mutex
	of map[string]*saying
}

func newWords() *words { return &words{of: map[string]*saying{}} }

// saying is what models say to one run.
type saying struct {
	now       told // in answers that go on
	followers []*Following
}

// maxSaid bounds what is kept for one run, or for one who follows it, in bytes: without the oldest of it then. A text
// comes in parts of up to maxPart.
const maxSaid, maxPart = 64 << 10, 4 << 10

// told are words that came one after the other.
type told struct {
	events []api.TokensEvent
	size   int
	lost   bool // the last of them isn't there
}

// add adds words: to those of the same text, where there are any.
func (t *told) add(e api.TokensEvent) {
	e.Lost, t.lost = e.Lost || t.lost, false
	t.size += len(e.Text)
	if n := len(t.events); n > 0 && goesOn(t.events[n-1], e) {
		t.events[n-1].Text += e.Text
	} else {
		t.events = append(t.events, e)
	}
	for t.size > maxSaid {
		t.size -= len(t.events[0].Text)
		t.events = slices.Delete(t.events, 0, 1)
		if t.lost = len(t.events) == 0; !t.lost {
			t.events[0].Lost = true
		}
	}
}

func goesOn(a, b api.TokensEvent) bool {
	fits := len(a.Text)+len(b.Text) <= maxPart
	return a.Answer == b.Answer && a.Kind == b.Kind && a.Field == b.Field && !b.Lost && fits
}

// take returns what there is, and leaves nothing.
func (t *told) take() []api.TokensEvent {
	events := t.events
	t.events, t.size = nil, 0
	return events
}

// forget drops the words of an answer.
func (t *told) forget(answer string) {
	t.events = slices.DeleteFunc(t.events, func(e api.TokensEvent) bool { return e.Answer == answer })
	t.size = 0
	for _, e := range t.events {
		t.size += len(e.Text)
	}
}

// Following is one who follows what models say to a run.
type Following struct {
	News <-chan struct{} // has something when there is more to Take

	words *words
	run   string
	news  chan struct{}
	told  told // not taken yet
}

// Follow returns what models say to a run from now on, and what there is of the answers that go on. It has to be
// closed.
func (f *Feature) Follow(id string) *Following {
	news := make(chan struct{}, 1)
	one := &Following{News: news, words: f.words, run: id, news: news}
	f.words.mu.Lock()
	defer f.words.mu.Unlock()
	of := f.words.at(id)
	of.followers = append(of.followers, one)
	one.hear(of.now.events...)
	return one
}

// Take returns what came since the last Take.
func (o *Following) Take() []api.TokensEvent {
	o.words.mu.Lock()
	defer o.words.mu.Unlock()
	return o.told.take()
}

// Close ends it.
func (o *Following) Close() {
	o.words.mu.Lock()
	defer o.words.mu.Unlock()
	of := o.words.at(o.run)
	of.followers = slices.DeleteFunc(of.followers, func(other *Following) bool { return other == o })
	o.words.drop(o.run)
}

// hear takes words. The caller holds the lock.
func (o *Following) hear(events ...api.TokensEvent) {
	for _, e := range events {
		o.told.add(e)
	}
	if len(events) == 0 {
		return
	}
	select {
	case o.news <- struct{}{}:
	default: // it is known
	}
}

// Said returns what models say to a run at the moment: nothing of a run that isn't a conversation's, and that nobody
// follows.
func (f *Feature) Said(id string) []api.TokensEvent {
	f.words.mu.Lock()
	defer f.words.mu.Unlock()
	if of := f.words.of[id]; of != nil {
		return slices.Clone(of.now.events)
	}
	return nil
}

// at returns what is said to a run. The caller holds the lock, as that of drop.
func (w *words) at(id string) *saying {
	if w.of[id] == nil {
		w.of[id] = &saying{}
	}
	return w.of[id]
}

// drop forgets a run to which nothing is said and that nobody follows.
func (w *words) drop(id string) {
	if of := w.of[id]; of != nil && len(of.followers)+len(of.now.events) == 0 {
		delete(w.of, id)
	}
}

func (w *words) tell(id string, e api.TokensEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.at(id)
	of.now.add(e)
	for _, one := range of.followers {
		one.hear(e)
	}
}

func (w *words) end(id, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at(id).now.forget(answer)
	w.drop(id)
}

func (w *words) isFollowed(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[id] != nil && len(w.of[id].followers) > 0
}

// listener implements gateway.Listener for a run.
type listener struct{ *account }

// Listen implements gateway.Listener. The first answer of a conversation's run is heard, too, which may begin before
// anybody can follow it. What may not be kept isn't shown.
func (l listener) Listen() gateway.Ear {
	record := &l.run.Record
	talks := record.Context != "" && record.Session == ""
	if !l.keepsContent() || !talks && !l.words.isFollowed(l.run.ID) {
		return nil
	}
	return &ear{
		account: l.account, answer: rand.Text()[:8],
		texts: map[text]*mask.Pieces{}, calls: map[string]*live.Fields{},
	}
}

// ear implements gateway.Ear: it masks what is said, and tells it.
type ear struct {
	*account
	answer string
	texts  map[text]*mask.Pieces
	calls  map[string]*live.Fields
	last   text // whose end may be held back
}

// text is one of those that an answer has.
type text struct{ kind, field string }

// Hear implements gateway.Ear.
func (e *ear) Hear(said live.Piece) {
	switch said.Kind {
	case live.Text:
		e.add(text{kind: api.AgentText}, said.Text)
	case live.Thought:
		e.add(text{kind: api.AgentThought}, said.Text)
	case live.Arguments:
		if said.Tool != capsule.FinalAnswer {
			return // which the run's own words are of
		}
		if e.calls[said.Part] == nil {
			e.calls[said.Part] = &live.Fields{}
		}
		for _, field := range e.calls[said.Part].Next(said.Text) {
			e.add(text{api.AgentText, field.Name}, field.Text)
		}
	}
}

func (e *ear) add(to text, more string) {
	if to != e.last {
		e.rest()
	}
	e.last = to
	by, known := e.texts[to]
	if !known {
		if len(e.texts) == maxTexts {
			return
		}
		by = e.run.Pieces()
		e.texts[to] = by
	}
	e.tell(to, by.Next(more))
}

// maxTexts bounds the texts of an answer: of those beyond it nothing is told.
const maxTexts = 100

// rest tells what was held back of the last text.
func (e *ear) rest() {
	if by := e.texts[e.last]; by != nil {
		e.tell(e.last, by.Pause())
	}
}

func (e *ear) tell(of text, more string) {
	if more != "" {
		e.words.tell(e.run.ID, api.TokensEvent{Answer: e.answer, Kind: of.kind, Field: of.field, Text: more})
	}
}

// Close implements gateway.Ear.
func (e *ear) Close() {
	e.rest()
	e.words.end(e.run.ID, e.answer)
}
