package agent

import (
	"encoding/json"
	"reflect"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// in returns what the pick finds in a document, whose numbers are json.Number. A nil Pick finds
// nothing.
func (p *Pick) in(document any) (any, bool) {
	if p == nil {
		return nil, false
	}
	for pointer, want := range p.When {
		found, ok := strictjson.Lookup(document, strictjson.Path(pointer))
		if !ok || !same(found, want) {
			return nil, false
		}
	}
	return strictjson.Lookup(document, strictjson.Path(p.At))
}

// same compares a value of a document with one of agent.yaml. Numbers are the same if their
// values are.
func same(found, want any) bool {
	number, ok := found.(json.Number)
	if !ok {
		return reflect.DeepEqual(found, want)
	}
	n, err := number.Float64()
	if err != nil {
		return false
	}
	switch want := want.(type) {
	case float64:
		return n == want
	case json.Number:
		w, err := want.Float64()
		return err == nil && n == w
	}
	return false
}
