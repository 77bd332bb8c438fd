package expr

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// upstream are the library's own functions that may be called, beside those with a predicate.
// What isn't here depends on the clock or the zone, isn't needed, or is replaced below because
// its costs have no bound or its result has no order.
var upstream = []string{
	"len", "type", "abs", "ceil", "floor", "round", "int", "float",
	"trimPrefix", "trimSuffix", "upper", "lower", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix",
	"toBase64", "fromBase64", "first", "last", "get", "take", "reverse", "concat", "sort",
}

// predicates are the library's functions with a predicate. They are part of its syntax.
var predicates = []string{
	"all", "none", "any", "one", "filter", "map", "count", "sum", "find", "findIndex", "findLast", "findLastIndex",
	"groupBy", "sortBy", "reduce",
}

// function is one of ours. Its calls have the meter before the arguments.
type function struct {
	call        func(m *meter, args []any) (any, error)
	least, most int
	usage       string
}

// functions are ours, by name. Those that begin with a space are put in for operators.
var functions map[string]function

func init() {
	functions = map[string]function{
		"chunk":   {chunk, 2, 2, "chunk(list, n) gives lists of n items"},
		"uniq":    {uniq, 1, 1, "uniq(list)"},
		"flatten": {flatten, 1, 1, "flatten(list)"},
		"keys": {
			ofMembers("keys", func(key string, _ any) any { return key }), 1, 1,
			"keys(object), in the order of the alphabet",
		},
		"values": {
			ofMembers("values", func(_ string, value any) any { return value }), 1, 1,
			"values(object), in the order of their keys",
		},
		"toPairs": {
			ofMembers("toPairs", func(key string, value any) any { return []any{key, value} }), 1, 1,
			"toPairs(object) gives lists of a key and a value",
		},
		"fromPairs": {fromPairs, 1, 1, "fromPairs(list) takes lists of a key and a value"},
		"split":     {splitText, 2, 2, "split(text, separator)"},
		"join":      {joinTexts, 1, 2, "join(list, separator)"},
		"replace":   {replace, 3, 3, "replace(text, old, new)"},
		"repeat":    {repeat, 2, 2, "repeat(text, n)"},
		"trim":      {trim, 1, 2, "trim(text), or trim(text, characters)"},
		"string":    {text, 1, 1, "string(value)"},
		"toJSON":    {toJSON, 1, 1, "toJSON(value)"},
		"fromJSON":  {fromJSON, 1, 1, "fromJSON(text)"},
		"min":       {ofNumbers("min", least), 1, math.MaxInt, "min(list), or min(a, b, …)"},
		"max":       {ofNumbers("max", most), 1, math.MaxInt, "max(list), or max(a, b, …)"},
		"mean":      {ofNumbers("mean", mean), 1, math.MaxInt, "mean(list), or mean(a, b, …)"},
		"median":    {ofNumbers("median", median), 1, math.MaxInt, "median(list), or median(a, b, …)"},

		" tick":       {call: passed},
		" number":     {call: numberOnly},
		" arithmetic": {call: arithmetic},
		" equal":      {call: equal},
		" in":         {call: in},
		" matches":    {call: matches},
	}
}

// metered is how the library calls a function.
func (f function) metered(args ...any) (any, error) {
	m := args[0].(*meter)
	if err := m.tick(); err != nil {
		return nil, err
	}
	return f.call(m, args[1:])
}

func (f function) count() string {
	switch {
	case f.most == math.MaxInt:
		return fmt.Sprintf("at least %d arguments", f.least)
	case f.least < f.most:
		return fmt.Sprintf("%d or %d arguments", f.least, f.most)
	case f.least == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", f.least)
}

// names are the functions that can be called.
func names() []string {
	known := slices.Concat(upstream, predicates)
	for name := range functions {
		if !strings.HasPrefix(name, " ") {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	return known
}

// passed hands a value on, and bounds what an iteration may make.
func passed(m *meter, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		if len(v) > maxText {
			return nil, errMemory
		}
	case []any:
		return v, m.grow(1)
	}
	return args[0], nil
}

// listOf returns a list's items, also where it is one of the library's.
func listOf(m *meter, name string, value any) ([]any, error) {
	value, err := m.plain(value)
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s expects a list, got %s", name, typeOf(value))
	}
	return list, m.grow(len(list))
}

func objectOf(m *meter, name string, value any) (map[string]any, []string, error) {
	value, err := m.plain(value)
	if err != nil {
		return nil, nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s expects an object, got %s", name, typeOf(value))
	}
	return object, slices.Sorted(maps.Keys(object)), m.grow(len(object))
}

func textArgument(name string, value any) (string, error) {
	s, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%s expects a text, got %s", name, typeOf(value))
	}
	return s, nil
}

func chunk(m *meter, args []any) (any, error) {
	list, err := listOf(m, "chunk", args[0])
	if err != nil {
		return nil, err
	}
	size, ok := integer(args[1])
	if !ok || size < 1 {
		return nil, fmt.Errorf("chunk expects a whole number from 1, got %s", typeOf(args[1]))
	}
	chunks := []any{}
	for part := range slices.Chunk(list, int(min(size, int64(max(len(list), 1))))) {
		chunks = append(chunks, part)
	}
	return chunks, nil
}

// uniq finds equal values by their JSON.
func uniq(m *meter, args []any) (any, error) {
	list, err := listOf(m, "uniq", args[0])
	if err != nil {
		return nil, err
	}
	seen := make(map[any]bool, len(list))
	unique := []any{}
	for _, item := range list {
		key, err := m.identity(item)
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			seen[key] = true
			unique = append(unique, item)
		}
	}
	return unique, nil
}

func flatten(m *meter, args []any) (any, error) {
	list, err := listOf(m, "flatten", args[0])
	if err != nil {
		return nil, err
	}
	flat := []any{}
	var add func(list []any, depth int) error
	add = func(list []any, depth int) error {
		if depth > maxDepth {
			return errMemory
		}
		for _, item := range list {
			if err := m.grow(1); err != nil {
				return err
			}
			item, err := m.plain(item)
			if err != nil {
				return err
			}
			if inner, ok := item.([]any); ok {
				if err := add(inner, depth+1); err != nil {
					return err
				}
				continue
			}
			flat = append(flat, item)
		}
		return nil
	}
	return flat, add(list, 0)
}

// ofMembers makes a list of an object's members, in the order of their keys.
func ofMembers(name string, give func(key string, value any) any) func(m *meter, args []any) (any, error) {
	return func(m *meter, args []any) (any, error) {
		object, names, err := objectOf(m, name, args[0])
		if err != nil {
			return nil, err
		}
		list := make([]any, len(names))
		for i, key := range names {
			list[i] = give(key, object[key])
		}
		return list, nil
	}
}

func fromPairs(m *meter, args []any) (any, error) {
	list, err := listOf(m, "fromPairs", args[0])
	if err != nil {
		return nil, err
	}
	object := make(map[string]any, len(list))
	for _, item := range list {
		pair, err := listOf(m, "fromPairs", item)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, fmt.Errorf("fromPairs expects lists of a key and a value, got one of %d items", len(pair))
		}
		key, err := textArgument("fromPairs", pair[0])
		if err != nil {
			return nil, err
		}
		object[key] = pair[1]
	}
	return object, nil
}
