package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// state is the object that the nodes of a scope share. It may be read at the same time.
type state struct {
	values map[string]any
	sizes  map[string]int // bytes of each key and its value, as JSON
	total  int
}

func newState() *state { return &state{values: map[string]any{}, sizes: map[string]int{}} }

// clone returns a state that is written without this one. They share values, which nobody
// changes.
func (s *state) clone() *state {
	return &state{values: maps.Clone(s.values), sizes: maps.Clone(s.sizes), total: s.total}
}

// fits reports whether the state stays below its limit with a patch.
func (s *state) fits(p patch) bool {
	total := s.total
	for key, size := range p.sizes {
		total += size - s.sizes[key]
	}
	return total <= MaxState
}

func (s *state) apply(p patch) {
	for key, value := range p.values {
		s.total += p.sizes[key] - s.sizes[key]
		s.values[key], s.sizes[key] = value, p.sizes[key]
	}
}

// only returns some keys of the state.
func (s *state) only(keys map[string]bool) map[string]any {
	out := make(map[string]any, len(keys))
	for key := range keys {
		out[key] = s.values[key]
	}
	return out
}

func overLimit(address string) *failing {
	return failed(address, KindStateLimit, "the state would be larger than %d bytes", MaxState).
		withHint("set less of the outputs, or give large data as files")
}

// patch is what a step writes into a state. Its values are always those that were decoded from
// their text: a walk over kept steps sees just what the first one saw.
type patch struct {
	values map[string]any
	sizes  map[string]int
	raw    json.RawMessage // the object; nil: nothing is written
}

func newPatch(values map[string]any) (patch, error) {
	if len(values) == 0 {
		return patch{}, nil
	}
	members := make(map[string]json.RawMessage, len(values))
	for key, value := range values {
		text, err := Encode(value)
		if err != nil {
			return patch{}, fmt.Errorf("%s isn't a JSON value", fault.Quote(key))
		}
		members[escapedKey(key)] = text
	}
	raw, err := strictjson.Encode(members)
	if err != nil {
		return patch{}, err
	}
	return readPatch(raw)
}

// readPatch reads the delta of a step.
func readPatch(raw json.RawMessage) (patch, error) {
	if len(raw) == 0 {
		return patch{}, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return patch{}, fmt.Errorf("decode a delta: %w", err)
	}
	p := patch{raw: raw, values: make(map[string]any, len(members)), sizes: make(map[string]int, len(members))}
	for key, text := range members {
		value, err := Decode(text)
		if err != nil {
			return patch{}, err
		}
		key = strings.TrimPrefix(key, mark)
		p.values[key], p.sizes[key] = value, len(key)+len(text)+len(`"":,`)
	}
	return p, nil
}
