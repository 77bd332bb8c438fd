// Package messages has people and programs say something to runs that go on.
//
//	Feature.Join      gives a run its part; the message that it begins with is stored with it
//	Feature.SayOnce   checks what is said, stores it, and wakes the run's program
//	part.Mounts       is GET /messages in the capsule API, which waits in part.Messages
//	part.Conclude     refuses what comes after the end
//	Feature.List      is what was said to a run
//
// Feature.Say (say.go) stores a message as an event before the program is woken.
//
// It must not know who leads a run, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package messages

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// The bounds of the messages of one run.
const (
	maxMessages = 1000
	maxBytes    = 16 << 20 // of all of them together, as they are stored
	page        = 100      // that a program gets at once
)

// Feature implements feature.Feature.
type Feature struct {
	process feature.Process

	mu   sync.Mutex
	live map[string]*part // by run
}

// New returns the Feature.
func New() *Feature { return &Feature{live: map[string]*part{}} }

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.process = p
	return nil
}

// Join implements feature.Feature.
func (f *Feature) Join(_ context.Context, r *run.Run, _ feature.Part) feature.Part {
	return &part{feature: f, run: r}
}

// Restore implements feature.Restorer.
func (f *Feature) Restore(_ context.Context, parts []feature.Part, _ feature.Ancestry) error {
	for _, p := range parts {
		f.goesOn(p.(*part))
	}
	return nil
}

func (f *Feature) goesOn(p *part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[p.run.ID] = p
}

// partOf returns the part of a run that goes on; nil: it doesn't, in this process.
func (f *Feature) partOf(id string) *part {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live[id]
}

// part is what was said to a run.
type part struct {
	feature.Indifferent
	feature *Feature
	run     *run.Run

	mu     sync.Mutex // one message is taken after the other
	known  bool       // count and bytes are what is stored
	closed bool       // the run is over
	count  int
	bytes  int
	news   pause.Notifier
}

// Open implements feature.Part.
func (p *part) Open() {
	p.known = true
	p.feature.goesOn(p)
}

// Begin implements feature.Part.
func (p *part) Begin() []api.EventData {
	if p.run.First == nil {
		return nil
	}
	first := p.run.MaskedMessage(*p.run.First)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(sizeOf(first))
	return []api.EventData{first}
}

// Conclude implements feature.Part.
func (p *part) Conclude() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// Close implements feature.Part.
func (p *part) Close() {
	p.feature.mu.Lock()
	defer p.feature.mu.Unlock()
	delete(p.feature.live, p.run.ID)
}

// Mounts implements feature.Part.
func (p *part) Mounts(feature.Slot) []capsuleapi.Mount {
	return []capsuleapi.Mount{capsuleapi.MessageMount(p.Messages)}
}

// Messages returns what was said after the message with a number, in order and not necessarily all of it.
// It waits for a first one until ctx ends, and returns nothing then.
func (p *part) Messages(ctx context.Context, after int64) ([]api.HeardMessage, error) {
	for {
		news := p.news.After() // before the look, so that nothing comes between
		found, _, err := p.feature.read(ctx, p.run.ID, after, page)
		if err != nil || len(found) > 0 {
			return found, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// hear stores a message, and wakes the program.
func (p *part) hear(ctx context.Context, m api.MessageEvent, once run.Once) error {
	m = p.run.MaskedMessage(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, err := p.run.WasTold(ctx, once); known || err != nil {
		return err
	}
	if p.closed {
		return tooLate()
	}
	if err := p.countStored(ctx); err != nil {
		return err
	}
	bytes := sizeOf(m)
	if p.count >= maxMessages || p.bytes+bytes > maxBytes {
		return fault.New(fault.TooLarge, "this run has %d messages with %d bytes; %d and %d are allowed", p.count,
			p.bytes, maxMessages, maxBytes).
			WithHint("ask for a new run")
	}
	if err := p.run.TellOnce(ctx, once, m); err != nil {
		return err
	}
	p.add(bytes)
	p.news.Notify()
	return nil
}

func (p *part) add(bytes int) { p.count, p.bytes = p.count+1, p.bytes+bytes }

// sizeOf is how many bytes are stored of a message.
func sizeOf(m api.MessageEvent) int {
	raw, _ := json.Marshal(m) // it was checked
	return len(raw)
}

// countStored counts the messages that an earlier process stored.
func (p *part) countStored(ctx context.Context) error {
	if p.known {
		return nil
	}
	count, bytes := 0, 0
	err := store.EachTold(ctx, p.feature.process.Events, p.run.ID, string(api.EventMessage), func(e store.Event) error {
		count, bytes = count+1, bytes+len(e.Data)
		return nil
	})
	if err == nil {
		p.known, p.count, p.bytes = true, count, bytes
	}
	return err
}

func tooLate() error {
	return fault.New(fault.Conflict, "the run is over: it hears nothing any more").
		WithHint("ask for a new run, maybe with the same context")
}
