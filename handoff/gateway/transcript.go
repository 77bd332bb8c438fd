package gateway

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Conversations take out of a request what an earlier one of the same run has sent already: a
// request holds the whole conversation, so that all of them grow with the square of its
// length. It is safe for concurrent use.
type Conversations struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]place
}

// place is where a conversation up to a message was first seen.
type place struct{ call, messages int }

// Folded is a request without the messages that stand in another one.
type Folded struct {
	Call     int    // whose first messages come first; 0: none are left out
	Messages int    // how many of them
	Body     []byte // JSON, with the messages that follow
}

// maxKnown bounds how many beginnings of conversations are remembered.
const maxKnown = 100_000

// Fold takes the messages out of a body that an earlier call began with. Calls are numbered
// from 1, and a number is used once. A body without a list of messages stays whole.
func (c *Conversations) Fold(call int, body []byte) Folded {
	name, messages := conversation(body)
	if len(messages) == 0 {
		return Folded{Body: body}
	}
	known := c.longest(call, messages)
	if known.messages == 0 {
		return Folded{Body: body}
	}
	changed, err := strictjson.Set(body, []string{name}, list(messages[known.messages:]))
	if err != nil {
		return Folded{Body: body}
	}
	return Folded{Call: known.call, Messages: known.messages, Body: changed}
}

// longest finds the longest known beginning, and remembers what is new.
func (c *Conversations) longest(call int, messages [][]byte) (known place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) > maxKnown {
		c.known = map[[sha256.Size]byte]place{}
	}
	var sum [sha256.Size]byte
	for i, m := range messages {
		one := sha256.Sum256(m)
		sum = sha256.Sum256(append(sum[:], one[:]...))
		if at, seen := c.known[sum]; seen {
			known = at
			continue
		}
		c.known[sum] = place{call, i + 1}
	}
	return known
}

// Unfold puts back what Fold took out. folded returns an earlier call as it was folded.
func Unfold(f Folded, folded func(call int) (Folded, error)) ([]byte, error) {
	if f.Messages == 0 {
		return f.Body, nil
	}
	name, last := conversation(f.Body)
	if name == "" {
		return nil, errFold
	}
	parts := [][][]byte{last}
	for at, want := f, f.Messages; want > 0; {
		earlier, err := folded(at.Call)
		if err != nil {
			return nil, err
		}
		_, own := conversation(earlier.Body)
		if earlier.Messages+len(own) < want || earlier.Messages > 0 && earlier.Call >= at.Call {
			return nil, errFold
		}
		if want > earlier.Messages {
			parts = append(parts, own[:want-earlier.Messages])
		}
		at, want = earlier, min(want, earlier.Messages)
	}
	slices.Reverse(parts)
	return strictjson.Set(f.Body, []string{name}, list(slices.Concat(parts...)))
}

var errFold = errors.New("the earlier call has too few messages")

// conversation returns the field of a body that holds its messages, and each of them.
func conversation(body []byte) (name string, messages [][]byte) {
	for field, value := range strictjson.Members(body) {
		if field == "messages" || field == "input" && len(value) > 0 && value[0] == '[' {
			return field, slices.Collect(strictjson.Elements(value))
		}
	}
	return "", nil
}

func list(values [][]byte) []byte {
	text := []byte{'['}
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, v...)
	}
	return append(text, ']')
}
