package handoff

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// tempName is the name of a file while it is copied. A callee's file whose name begins with
// ownPrefix gets a directory of its handoff's own.
const (
	ownPrefix = ".aod-"
	tempName  = ownPrefix + "partial"
)

// placement says where the files of a handoff go.
type placement struct {
	ID    string   `json:"id"`
	Names []string `json:"names"` // relative to incoming, in the order of the files
}

// placementFor checks the names of files, and decides where they go.
func placementFor(root *os.Root, id string, files []Output) (placement, error) {
	if err := checkNames(files); err != nil {
		return placement{}, err
	}
	dir := ""
	for _, f := range files {
		taken, err := isTaken(root, f.Name)
		if err != nil {
			return placement{}, err
		}
		if taken {
			dir = id // nothing else can have this name: names that look like an id count as taken
			break
		}
	}
	p := placement{ID: id}
	for _, f := range files {
		p.Names = append(p.Names, path.Join(dir, f.Name))
	}
	return p, nil
}

// checkNames checks that names are clean and different. They were checked before, but they
// come from a callee.
func checkNames(files []Output) error {
	names := make([]string, 0, len(files))
	for _, f := range files {
		if clean, err := contract.CleanName(f.Name, contract.StageOutput); err != nil || clean != f.Name {
			return fault.New(fault.Internal, "a file of the callee's has a name that can't be taken over")
		}
		names = append(names, f.Name+"/")
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if strings.HasPrefix(names[i], names[i-1]) {
			return fault.New(fault.Internal, "two files of the callee's have the same name")
		}
	}
	return nil
}

// isTaken reports whether a file of another handoff stands in the way of a name.
func isTaken(root *os.Root, name string) (bool, error) {
	parts := strings.Split(name, "/")
	if strings.HasPrefix(parts[0], ownPrefix) || httpwire.IsRunID(parts[0]) {
		return true, nil
	}
	for i := range parts {
		info, err := root.Lstat(strings.Join(parts[:i+1], "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case i == len(parts)-1 || !info.IsDir():
			return true, nil
		}
	}
	return true, nil
}

// remove removes the files of the placement that exist, and directories that are empty then.
func (p placement) remove(root *os.Root) error {
	for _, name := range append([]string{tempName}, p.Names...) {
		if err := root.Remove(name); err != nil && !isMissing(err) {
			return err
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if root.Remove(dir) != nil {
				break // others' files are in it
			}
		}
	}
	return nil
}
