package flow

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/flow"
)

// names gives the files in a value names that are clean and its own: of two files with one
// name, the second lies in a directory. The same value gives the same names.
type names struct {
	of    map[flow.File]string
	taken map[string]bool
	files []flow.File // in the order in which they were met
	whole bool        // names keep their directories
}

func newNames() *names { return &names{of: map[flow.File]string{}, taken: map[string]bool{}} }

// plain returns an object with the names of its files in their places.
func (n *names) plain(object map[string]any) (map[string]any, error) {
	value, err := n.value(object)
	plain, _ := value.(map[string]any)
	return plain, err
}

func (n *names) value(value any) (any, error) {
	switch v := value.(type) {
	case flow.File:
		return n.name(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			member, err := n.value(v[key])
			if err != nil {
				return nil, err
			}
			out[key] = member
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			member, err := n.value(item)
			if err != nil {
				return nil, err
			}
			out[i] = member
		}
		return out, nil
	}
	return value, nil
}

// name returns the name of a file, a new one for a file that was not met before.
func (n *names) name(f flow.File) (string, error) {
	if name, known := n.of[f]; known {
		return name, nil
	}
	base := f.Name
	if !n.whole {
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
	n.of[f], n.taken[clean] = clean, true
	n.files = append(n.files, f)
	return clean, nil
}
