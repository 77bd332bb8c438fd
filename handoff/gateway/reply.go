package gateway

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
)

// reply is the answer to a call, as the run gets it.
type reply struct {
	w        http.ResponseWriter
	patience time.Duration // with a reader that takes nothing
	started  time.Time     // the call

	source Source        // who answered
	status int           // that was sent
	begun  bool          // it was sent
	first  time.Duration // until then
	kept   kept
}

// give answers with what was answered before.
func (r *reply) give(from Source, a cassette.Answer) error {
	r.source = from
	if a.Type == typeJSON {
		r.announce(len(slices.Concat(a.Chunks...)))
	}
	if a.Status >= http.StatusBadRequest {
		r.w.Header().Set("X-Should-Retry", "false")
	}
	r.head(a.Status, a.Type)
	return r.last(a.Chunks...)
}

// start sends the status and the headers of a provider's answer.
func (r *reply) start(u *upstream) {
	for _, name := range passedOn {
		if value := u.header.Get(name); value != "" && len(value) <= 256 && !u.quotesKey([]byte(value)) {
			r.w.Header().Set(name, value)
		}
	}
	r.head(u.status, u.media)
}

// passedOn are the headers of an answer that the run gets.
var passedOn = []string{"X-Request-Id", "Request-Id", "Openai-Processing-Ms", "Openai-Version"}

// announce says how long an answer is that is there whole, so that its reader sees whether it
// was cut off.
func (r *reply) announce(size int) { r.w.Header().Set("Content-Length", strconv.Itoa(size)) }

func (r *reply) head(status int, media string) {
	r.w.Header().Set("Content-Type", media)
	r.status, r.begun, r.first = status, true, time.Since(r.started)
	r.kept.media = media
	r.w.WriteHeader(status)
}

// restTime is how long a provider may take to end a stream after its last event.
const restTime = 2 * time.Second

// finish passes on what was held.
func (r *reply) finish(u *upstream) error {
	if u.events == nil {
		r.announce(len(u.body))
		r.start(u)
		return r.last(u.body)
	}
	if u.held == nil {
		r.kept.whole = true
		return nil
	}
	if err := r.write(u.held); err != nil {
		return errGone
	}
	u.watch.Heard(restTime)
	for {
		raw, err := u.events.next()
		if err != nil {
			r.kept.whole = true
			return nil //nolint:nilerr // the answer is whole
		}
		if err := r.write(raw); err != nil {
			return errGone
		}
	}
}

// last writes all of an answer.
func (r *reply) last(parts ...cassette.Chunk) error {
	for _, part := range parts {
		if err := r.write(part); err != nil {
			return errGone
		}
	}
	r.kept.whole = true
	return nil
}

// write passes a part of an answer on at once. A reader that takes nothing for too long is
// gone.
func (r *reply) write(raw []byte) error {
	r.kept.add(raw)
	conn := http.NewResponseController(r.w)
	_ = conn.SetWriteDeadline(time.Now().Add(r.patience)) // a writer without one is a test's
	if _, err := r.w.Write(raw); err != nil {             //nolint:gosec // it is JSON or events, and no page
		return err
	}
	if err := conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// kept is an answer as it was given, where somebody wants it later.
type kept struct {
	wanted bool
	whole  bool
	cut    bool
	media  string
	size   int
	chunks [][]byte
}

// maxKept bounds an answer that is kept, in bytes.
const maxKept = 16 << 20

func (k *kept) add(raw []byte) {
	if !k.wanted || k.cut || len(raw) == 0 {
		return
	}
	if k.size += len(raw); k.size > maxKept {
		k.cut = true
		return
	}
	k.chunks = append(k.chunks, bytes.Clone(raw))
}

// with returns what it will be when the rest of an answer was given, too.
func (k kept) with(u *upstream) kept {
	k.chunks, k.media, k.whole = slices.Clip(k.chunks), u.media, true
	k.add(u.body)
	k.add(u.held)
	return k
}

// answer returns what was given, and whether it is whole.
func (k *kept) answer(status int) (cassette.Answer, bool) {
	a := cassette.Answer{Status: status, Type: k.media}
	for _, c := range k.chunks {
		a.Chunks = append(a.Chunks, c)
	}
	return a, k.wanted && k.whole && !k.cut && status < http.StatusBadRequest
}
