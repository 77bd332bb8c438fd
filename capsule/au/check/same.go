package check

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// sameJSON reports whether two documents are equal. The order of fields doesn't count, but
// numbers must be written alike.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, errOne := decode(a)
	two, errTwo := decode(b)
	return errOne == nil && errTwo == nil && reflect.DeepEqual(one, two)
}

func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}
