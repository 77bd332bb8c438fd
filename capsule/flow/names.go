package flow

import (
	"fmt"
	"path"

	"github.com/agent-on-demand/aod/capsule/contract"
)

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
