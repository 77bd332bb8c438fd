package capsuleapi

import (
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	maxMemoryKey   = 255     // bytes
	maxMemoryValue = 1 << 20 // bytes of one value, as JSON
)

// Memory keeps values for all attempts of a run.
type Memory interface {
	// Recall returns the value of a key. The error is a NotFound fault where there is none.
	Recall(ctx context.Context, key string) (json.RawMessage, error)
	// Keep keeps a value, and returns what the key has from now on: where it had a value, that one stays.
	Keep(ctx context.Context, key string, value json.RawMessage) (json.RawMessage, error)
}

// memoryValue is the answer to what is asked of a Memory.
type memoryValue struct {
	Value json.RawMessage `json:"value"`
}

// MemoryMount has a run's program keep values.
func MemoryMount(memory Memory) Mount {
	return Mount{Path: "/memory", actions: func(s responder, _ *handoff.Broker) map[string]action {
		m := memories{s, memory}
		return map[string]action{http.MethodGet: m.get, http.MethodPut: m.put}
	}}
}

type memories struct {
	responder responder
	memory    Memory
}

func (m memories) get(w http.ResponseWriter, r *http.Request) error {
	key, err := memoryKey(r)
	if err != nil {
		return err
	}
	value, err := m.memory.Recall(r.Context(), key)
	if err != nil {
		return err
	}
	return m.responder.reply(w, r, http.StatusOK, memoryValue{value})
}

func (m memories) put(w http.ResponseWriter, r *http.Request) error {
	key, err := memoryKey(r)
	if err != nil {
		return err
	}
	f, err := readFields(w, r, maxMemoryValue+httpwire.SmallBody)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	if err := f.Only("value"); err != nil {
		return err
	}
	value := f["value"]
	switch {
	case value == nil:
		return fault.New(fault.BadRequest, "there is nothing to keep").WithHint(`the body is {"value": …}, any JSON`)
	case len(value) > maxMemoryValue:
		return fault.New(fault.TooLarge, "the value has %d bytes; %d are allowed", len(value), maxMemoryValue).
			WithHint("write large data into a file, and keep what it was made of")
	}
	if value, err = m.memory.Keep(r.Context(), key, value); err != nil {
		return err
	}
	return m.responder.reply(w, r, http.StatusOK, memoryValue{value})
}

// memoryKey reads ?key.
func memoryKey(r *http.Request) (string, error) {
	values, err := queryOf(r, "key")
	if err != nil {
		return "", err
	}
	key := values.Get("key")
	if key == "" || len(key) > maxMemoryKey || !utf8.ValidString(key) {
		return "", fault.New(fault.BadRequest, `the query parameter "key" is not valid`).
			WithHint("it is a text of 1 to %d bytes", maxMemoryKey)
	}
	return key, nil
}
