package orchestrator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// The bounds of the messages of one run.
const (
	maxMessages     = 1000
	maxMessageBytes = 16 << 20 // of all of them together, as they are stored
	messagePage     = 100      // that a program gets at once
)

// heard counts the messages of a run, and wakes its program when there is another.
type heard struct {
	mu     sync.Mutex
	known  bool // what follows was counted
	closed bool // the run is over, as far as what is said to it goes
	count  int
	bytes  int
	news   pause.Notifier

	first []store.Event // the message with which the run begins, to be stored with it; empty: none
}

// begin sets what a new run begins with; nil: nothing.
func (h *heard) begin(r *run.Run, m *api.MessageEvent) {
	h.known = true
	if m != nil {
		h.first = []store.Event{newEvent(m.At, r.MaskedMessage(*m))}
		h.count, h.bytes = 1, len(h.first[0].Data)
	}
}

// close has every further message refused.
func (h *heard) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// Say stores a message to a run that goes on, of which its program and whoever listens to its
// events hear. One without an id gets one; its role is that of a user. The error is a NotFound fault
// for an unknown run, a Conflict fault for one that is over, a TooLarge fault beyond 1,000 messages
// or 16 MiB of them, and an Input fault for what is no message. Files can't be placed in a run that
// may have begun: they are an Input fault. Say removes them in any case.
func (s *Service) Say(ctx context.Context, id string, m api.MessageEvent, files *spool.Spool) error {
	_, err := s.SayOnce(ctx, id, "", m, files)
	return err
}

// SayOnce is Say with a key: the same message again under the same key changes nothing, and another
// one is an Input fault. It returns the message as it was given, with its id and its time.
func (s *Service) SayOnce(
	ctx context.Context, id, key string, m api.MessageEvent, files *spool.Spool,
) (said api.MessageEvent, err error) {
	return s.say(ctx, id, m, files, keyOfTold("say", id, key, digestOfMessage(m)))
}

func (s *Service) say(
	ctx context.Context, id string, m api.MessageEvent, files *spool.Spool, key store.Key,
) (said api.MessageEvent, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	if err := errors.Join(s.undamaged(ctx), s.room(0)); err != nil {
		return m, err
	}
	if m, err = saidNow(m, files); err != nil {
		return m, err
	}
	if err := s.seen(ctx, id); err != nil {
		return m, err
	}
	j := s.job(id)
	if j == nil {
		if _, err := s.Get(ctx, id); err != nil {
			return m, err
		}
		return m, tooLate()
	}
	return m, j.hear(ctx, m, key)
}

func tooLate() error {
	return fault.New(fault.Conflict, "the run is over: it hears nothing any more").
		WithHint("ask for a new run, maybe with the same context")
}

// saidNow completes a message and checks it.
func saidNow(m api.MessageEvent, files *spool.Spool) (api.MessageEvent, error) {
	if m.ID == "" {
		id, err := run.NewID()
		if err != nil {
			return m, err
		}
		m.ID = id
	}
	m.Role, m.At = cmp.Or(m.Role, api.RoleUser), time.Now().UTC()
	if m.Role != api.RoleUser {
		return m, fault.New(fault.Input, "the message is not in the role of a user")
	}
	withFile := len(files.Files()) > 0
	for _, part := range m.Parts {
		withFile = withFile || part.File != nil
	}
	if withFile {
		return m, fault.New(fault.Input, "a message to a run that goes on can have no files").
			WithHint("give files when the run is asked for, or send what is in them as text or data")
	}
	return m, api.CheckMessage(m)
}

// keyOfTold makes a key of what was told to a run, or by it; none without a text for it.
func keyOfTold(what, run, key, fingerprint string) store.Key {
	if key == "" {
		return store.Key{}
	}
	return store.Key{Value: what + "/" + run + "/" + key, Fingerprint: fingerprint}
}

// digestOfMessage is that of what a client says, without the time.
func digestOfMessage(m api.MessageEvent) string {
	m.At = time.Time{}
	return digestOfJSON(m)
}

func digestOfJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // a document in it is none: whoever checks it says so
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// hear stores a message, and wakes the program.
func (j *job) hear(ctx context.Context, m api.MessageEvent, key store.Key) error {
	m = j.MaskedMessage(m)
	h := &j.heard
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, err := j.loop.wasTold(ctx, key); known || err != nil {
		return err
	}
	if h.closed || j.hasEnded() {
		return tooLate()
	}
	if err := j.countHeard(ctx); err != nil {
		return err
	}
	event := newEvent(m.At, m)
	if h.count >= maxMessages || h.bytes+len(event.Data) > maxMessageBytes {
		return fault.New(fault.TooLarge, "this run has %d messages with %d bytes; %d and %d are allowed", h.count,
			h.bytes, maxMessages, maxMessageBytes).
			WithHint("ask for a new run")
	}
	if err := j.loop.storeTold(ctx, key, j.ID, event); err != nil {
		return err
	}
	h.count, h.bytes = h.count+1, h.bytes+len(event.Data)
	h.news.Notify()
	j.news.Notify()
	j.Tell(run.Event{Message: &m})
	return nil
}

// countHeard counts the messages that an earlier process stored.
func (j *job) countHeard(ctx context.Context) error {
	h := &j.heard
	if h.known {
		return nil
	}
	count, bytes := 0, 0
	err := j.loop.eachTold(ctx, j.ID, api.EventMessage, func(e store.Event) error {
		count, bytes = count+1, bytes+len(e.Data)
		return nil
	})
	if err == nil {
		h.known, h.count, h.bytes = true, count, bytes
	}
	return err
}

// wasTold reports whether something was stored under a key, or that something else was.
func (l *loop) wasTold(ctx context.Context, key store.Key) (bool, error) {
	if key.Value == "" {
		return false, nil
	}
	_, fingerprint, err := l.journal.ByKey(ctx, key.Value)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case err == nil && fingerprint != key.Fingerprint:
		return false, otherTold()
	}
	return err == nil, err
}

func otherTold() error {
	return fault.New(fault.Input, "the key belongs to something else that was told").
		WithHint("send another Idempotency-Key with something else")
}

// storeTold stores an event, with its key where it has one.
func (l *loop) storeTold(ctx context.Context, key store.Key, run string, event store.Event) error {
	ctx = context.WithoutCancel(ctx)
	if key.Value == "" {
		return l.journal.Append(ctx, run, event)
	}
	_, err := l.journal.AppendOnce(ctx, key, run, event)
	var taken *store.Taken
	if errors.As(err, &taken) {
		return otherTold()
	}
	return err
}

// eachTold goes through the stored events of a run that have one type.
func (l *loop) eachTold(ctx context.Context, run string, kind api.EventType, do func(store.Event) error) error {
	for after := int64(0); ; {
		events, err := l.journal.Told(context.WithoutCancel(ctx), run, string(kind), after, eventPage)
		if err != nil {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if err := do(e); err != nil {
				return err
			}
		}
		if !store.Full(events, eventPage) {
			return nil
		}
	}
}

// Messages implements handoff.Runs.
func (c *childRuns) Messages(ctx context.Context, after int64) ([]api.HeardMessage, error) {
	for {
		news := c.job.heard.news.After() // before the look, so that nothing comes between
		found, _, err := c.messages(ctx, c.job.ID, after, messagePage)
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

// messages reads messages of a run that come after one. more says that there may be others.
func (l *loop) messages(
	ctx context.Context, run string, after int64, limit int,
) (found []api.HeardMessage, more bool, err error) {
	events, err := l.journal.Told(context.WithoutCancel(ctx), run, string(api.EventMessage), after, limit)
	found = make([]api.HeardMessage, len(events))
	for i, e := range events {
		found[i].N = e.Seq
		if err := json.Unmarshal(e.Data, &found[i].MessageEvent); err != nil {
			return nil, false, undecodable(err)
		}
	}
	return found, store.Full(events, limit), err
}

// Messages returns a part of the messages of a run, those that come after one with a number, in
// their order. The limit is 1 to 1000; 0 is 100. An unknown run is a NotFound fault.
func (s *Service) Messages(ctx context.Context, id string, after int64, limit int) (api.MessagePage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.MessagePage{}, err
	}
	if _, err := s.Get(ctx, id); err != nil {
		return api.MessagePage{}, err
	}
	found, more, err := s.messages(ctx, id, after, limit)
	page := api.MessagePage{Messages: found}
	if more {
		page.Next = &found[len(found)-1].N
	}
	return page, err
}

// firstMessage is the message that a run begins with, whose files are among those that it gets.
func (sub Submission) firstMessage(placed []run.PlacedFile) (*api.MessageEvent, error) {
	if sub.Message == nil {
		return nil, nil
	}
	m := *sub.Message
	m.Parts = append([]api.Part(nil), m.Parts...)
	used := map[int]bool{}
	for i, part := range m.Parts {
		if part.File == nil {
			continue
		}
		file, err := placedAs(part.File.Name, sub.Files.Files(), placed, used)
		if err != nil {
			return nil, err
		}
		m.Parts[i].File = &file
	}
	if m.ID == "" {
		id, err := run.NewID()
		if err != nil {
			return nil, err
		}
		m.ID = id
	}
	m.Role, m.At = cmp.Or(m.Role, api.RoleUser), time.Now().UTC()
	return &m, api.CheckMessage(m)
}

// placedAs returns a received file under the name that it has in /io/input. Of several with one name
// each is used once.
func placedAs(name string, files []spool.File, placed []run.PlacedFile, used map[int]bool) (api.File, error) {
	for i, f := range files {
		if f.Name == name && !used[i] && i < len(placed) {
			used[i] = true
			return api.File{Name: placed[i].Name, SizeBytes: f.Size, SHA256: f.SHA256}, nil
		}
	}
	return api.File{}, fault.New(fault.Input, "the message names a file that was not given")
}
