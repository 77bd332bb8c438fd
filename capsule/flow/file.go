package flow

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// File is a file in a state, an input or an output. It goes on by reference: the host has its
// bytes, by their digest. No payload can hold one: Encode writes it so that no JSON that a
// program gives is taken for one.
type File struct {
	Name      string `json:"name" expr:"name"` // slash-separated, clean
	SizeBytes int64  `json:"size_bytes" expr:"size_bytes"`
	SHA256    string `json:"sha256" expr:"sha256"` // hex
}

const (
	// fileKey marks a File in encoded values.
	fileKey = "$file"
	// mark begins fileKey. A program's key that begins so is written with one more.
	mark = "$"
)

// Encode writes a value of JSON values and Files.
func Encode(value any) (json.RawMessage, error) { return strictjson.Encode(escaped(value)) }

func escaped(value any) any {
	out, _ := replaced(value, escapedKey, func(leaf any) (any, error) {
		if f, ok := leaf.(File); ok {
			leaf = map[string]any{fileKey: map[string]any{
				"name": f.Name, "size_bytes": f.SizeBytes,
				"sha256": f.SHA256,
			}}
		}
		return leaf, nil
	})
	return out
}

// replaced copies a value with other keys of its objects, in their order, and other leaves.
func replaced(value any, keyOf func(string) string, leaf func(any) (any, error)) (_ any, err error) {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			if out[keyOf(key)], err = replaced(v[key], keyOf, leaf); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			if out[i], err = replaced(item, keyOf, leaf); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return leaf(value)
}

func escapedKey(key string) string {
	if strings.HasPrefix(key, mark) {
		return mark + key
	}
	return key
}

// Values makes of JSON values, as strictjson or contract read them, those of a state: whole
// numbers are int64. Nothing in them becomes a File; those that are there stay. What needs no
// change is shared. The error is of a number that can't be held.
func Values(value any) (any, error) { return expr.Values(value) }

// Decode reads what Encode wrote: JSON values with int64 for whole numbers, and Files.
// Something else is an Internal fault: nobody but Encode writes it.
func Decode(raw json.RawMessage) (any, error) {
	value, err := strictjson.Decode(raw)
	if err == nil {
		value, err = Values(value)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a value of a flow can't be read")
	}
	return restored(value)
}

func restored(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if file, ok := v[fileKey]; ok {
			return restoredFile(v, file)
		}
		return restoredObject(v)
	case []any:
		for i, item := range v {
			var err error
			if v[i], err = restored(item); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func restoredObject(object map[string]any) (any, error) {
	out := make(map[string]any, len(object))
	for key, member := range object {
		plain, marked := strings.CutPrefix(key, mark)
		if marked && !strings.HasPrefix(plain, mark) {
			return nil, fault.New(fault.Internal, "a value of a flow has a key that isn't escaped")
		}
		var err error
		if out[plain], err = restored(member); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var digest = lazyregexp.New(`^[0-9a-f]{64}$`)

func restoredFile(object map[string]any, file any) (any, error) {
	members, _ := file.(map[string]any)
	name, named := members["name"].(string)
	size, sized := members["size_bytes"].(int64)
	sum, summed := members["sha256"].(string)
	if len(object) != 1 || len(members) != 3 || !named || !sized || !summed || size < 0 || !digest().MatchString(sum) {
		return nil, fault.New(fault.Internal, "a value of a flow has a file that isn't one")
	}
	return File{Name: name, SizeBytes: size, SHA256: sum}, nil
}

// Names give the files in values names that are clean and each file's own: of two files with
// one name, the second lies in a directory. The same values give the same names. The zero Names
// have given none.
type Names struct {
	Whole bool // names keep their directories; else they are the last parts

	of    map[File]string
	taken map[string]bool
	files []File // in the order in which they were met
}

// Files returns the files that have names, in the order in which they got them.
func (n *Names) Files() []File { return n.files }

// Of returns the name of a file that has one.
func (n *Names) Of(f File) string { return n.of[f] }

// Has reports whether a file has the name.
func (n *Names) Has(name string) bool { return n.taken[name] }

// Plain returns an object with the names of its files in their places. The error is an Input
// fault: a file's name can't be made clean.
func (n *Names) Plain(object map[string]any) (map[string]any, error) {
	value, err := replaced(object, func(key string) string { return key }, func(leaf any) (any, error) {
		if f, ok := leaf.(File); ok {
			return n.name(f)
		}
		return leaf, nil
	})
	plain, _ := value.(map[string]any)
	return plain, err
}

// name returns the name of a file, a new one for a file that was not met before.
func (n *Names) name(f File) (string, error) {
	if name, known := n.of[f]; known {
		return name, nil
	}
	base := f.Name
	if !n.Whole {
		base = path.Base(base)
	}
	name := base
	for i := 2; n.taken[name]; i++ {
		name = path.Join(fmt.Sprint(i), base)
	}
	clean, err := contract.CleanName(name, contract.AnyStage)
	if err != nil {
		return "", err
	}
	if n.of == nil {
		n.of, n.taken = map[File]string{}, map[string]bool{}
	}
	n.of[f], n.taken[clean] = clean, true
	n.files = append(n.files, f)
	return clean, nil
}
