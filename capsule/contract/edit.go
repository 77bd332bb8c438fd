package contract

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// With returns a copy in which the field at the dotted path has the value. Objects
// on the way are made where they are missing; a field keeps its place. A path that
// leads through something that is no object is an Input fault.
func (p Payload) With(path string, value any) (Payload, error) {
	keys, err := splitPath(path)
	if err != nil {
		return Payload{}, err
	}
	text, err := encode(value)
	if err != nil {
		return Payload{}, err
	}
	raw, err := setRaw(p.JSON(), keys, text)
	if err != nil {
		return Payload{}, err
	}
	return Decode(raw, math.MaxInt64)
}

func splitPath(path string) ([]string, error) {
	keys := strings.Split(path, ".")
	for _, key := range keys {
		if key == "" {
			return nil, fault.New(fault.Input, "the field path %s has an empty part", quote(path)).
				WithHint("write the names of the fields with dots between them, such as options.limit")
		}
	}
	if len(keys) > MaxDepth {
		return nil, fault.New(fault.Input, "the field path has more than %d parts", MaxDepth)
	}
	return keys, nil
}

// setRaw sets a field in the text of an object, which keeps order and numbers.
func setRaw(raw []byte, keys []string, value []byte) ([]byte, error) {
	members, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	i := 0
	for i < len(members) && members[i].key != keys[0] {
		i++
	}
	if i == len(members) {
		members = append(members, member{key: keys[0], value: []byte("{}")})
	}
	if len(keys) > 1 {
		if value, err = setRaw(members[i].value, keys[1:], value); err != nil {
			return nil, err
		}
	}
	members[i].value = value
	return join(members)
}

type member struct {
	key   string
	value []byte
}

func membersOf(raw []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, fault.New(fault.Input, "the field path leads through a value that is no object").
			WithHint("a dotted path goes through objects only")
	}
	var members []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the payload could not be read again")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the payload could not be read again")
		}
		members = append(members, member{key: key.(string), value: value})
	}
	return members, nil
}

func join(members []member) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encode(m.key)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
