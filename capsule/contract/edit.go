package contract

import (
	"math"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
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
	raw, err := strictjson.Set(p.JSON(), keys, text)
	if err != nil {
		return Payload{}, fault.New(fault.Input, "the field path leads through a value that is no object").
			WithHint("a dotted path goes through objects only")
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
