package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// maxDepth is how deep a result may be: less than what a document may be, since it is stored
// inside of others.
const maxDepth = strictjson.MaxDepth - 8

var (
	errFinite = errors.New("the result isn't a finite number")
	errDeep   = fmt.Errorf("the result is nested more than %d deep", maxDepth)
)

// Values makes of JSON values, as package strictjson or contract gives them, those that
// expressions see: int64 for every number that is a whole one below 2^63. The error is of a
// value that is too deep or too large.
func Values(value any) (any, error) {
	return (*meter)(nil).normal(value, 0)
}

// normal makes a result what JSON holds: int64 for every number without a fraction, as it
// would be after it was written and read again. Values of types that it doesn't know stay as
// they are. What needs no change isn't copied.
func (m *meter) normal(value any, depth int) (any, error) {
	if m != nil && depth > maxDepth {
		return nil, errDeep
	}
	if err := m.grow(1); err != nil {
		return nil, err
	}
	value, err := m.plain(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case string:
		return strings.ToValidUTF8(v, "\uFFFD"), m.text(len(v)) // a slice of a text may cut a letter
	case float64:
		return whole(v)
	case []any:
		return m.normalList(v, depth)
	case map[string]any:
		return m.normalObject(v, depth)
	}
	return value, nil
}

func whole(v float64) (any, error) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return nil, errFinite
	case v == math.Trunc(v) && math.Abs(v) < 1<<63:
		return int64(v), nil
	}
	return v, nil
}

func (m *meter) normalList(list []any, depth int) (any, error) {
	result := list
	for i, item := range list {
		fresh, err := m.normal(item, depth+1)
		if err != nil {
			return nil, err
		}
		if same(item, fresh) {
			continue
		}
		if &result[0] == &list[0] {
			result = append([]any{}, list...)
		}
		result[i] = fresh
	}
	if result == nil {
		return []any{}, nil
	}
	return result, nil
}

func (m *meter) normalObject(object map[string]any, depth int) (any, error) {
	var result map[string]any
	for key, member := range object {
		fresh, err := m.normal(member, depth+1)
		if err != nil {
			return nil, err
		}
		if same(member, fresh) {
			continue
		}
		if result == nil {
			result = make(map[string]any, len(object))
			for k, v := range object {
				result[k] = v
			}
		}
		result[key] = fresh
	}
	if result != nil {
		return result, nil
	}
	return object, nil
}

// same reports whether two values are one, so that nothing has to be copied.
func same(a, b any) bool {
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
	case nil, bool, string, int64, uint64, float64:
		return a == b
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) // handed through
}

// plain makes one of JSON's types of a value of the library's, not looking into it.
func (m *meter) plain(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string, int64, float64, []any, map[string]any:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return float64(v), nil
	case json.Number:
		return ofNumber(v)
	case map[any][]any: // of groupBy
		return m.groups(v)
	}
	kind := reflect.ValueOf(value)
	switch kind.Kind() {
	case reflect.Slice, reflect.Array:
		return m.plainList(kind)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return nil, errors.New("the result isn't a value that JSON can hold")
	}
	return value, nil
}

func (m *meter) plainList(list reflect.Value) (any, error) {
	if err := m.grow(list.Len()); err != nil {
		return nil, err
	}
	items := make([]any, list.Len())
	for i := range items {
		items[i] = list.Index(i).Interface()
	}
	return items, nil
}

func (m *meter) groups(groups map[any][]any) (any, error) {
	if err := m.grow(len(groups)); err != nil {
		return nil, err
	}
	object := make(map[string]any, len(groups))
	for key, group := range groups {
		name, err := textOf(key, maxText)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, errors.New("groupBy made two groups whose keys are the same text, such as 1 and \"1\"")
		}
		object[name] = group
	}
	return object, nil
}

func ofNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, errFinite
	}
	return whole(f)
}

// textOf writes a value into a text of at most so many bytes: nothing where it is nil, as JSON
// where it isn't text.
func textOf(value any, most int) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		if len(v) > most {
			return "", errMemory
		}
		return v, nil
	case bool, int, int64, uint64, float64, []any, map[string]any:
		return jsonOf(value, most)
	}
	return "", errors.New("a file can't stand in a text: give it as a value of its own")
}

func jsonOf(value any, most int) (string, error) {
	raw, err := strictjson.Encode(value)
	if err != nil {
		return "", errors.New("the value can't be written as JSON")
	}
	if len(raw) > most {
		return "", errMemory
	}
	return string(raw), nil
}

// typeOf names a value's type in JSON's words.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a truth value"
	case string:
		return "a text"
	case int, int64, uint64, float64:
		return "a number"
	case map[string]any, map[any][]any:
		return "an object"
	}
	if kind := reflect.TypeOf(value).Kind(); kind == reflect.Slice || kind == reflect.Array {
		return "a list"
	}
	return "a file"
}
