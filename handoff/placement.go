package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
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

// place puts each file where the placement has it.
func (p placement) place(root *os.Root, files []Output) ([]PlacedFile, error) {
	placed := make([]PlacedFile, 0, len(files))
	for i, f := range files {
		if err := put(root, f.Path, p.Names[i]); err != nil {
			return nil, fmt.Errorf("place a file: %w", err)
		}
		placed = append(placed, PlacedFile{
			Name: f.Name, Path: path.Join(string(contract.StageIncoming), p.Names[i]),
			SizeBytes: f.SizeBytes, SHA256: f.SHA256, Field: f.Field,
		})
	}
	return placed, nil
}

// put makes a file of ours appear below root, whole at once. It makes a hard link, which the
// read-only mount protects from the capsule, or else a copy.
func put(root *os.Root, source, name string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("an output file is %s", safefs.Describe(info.Mode()))
	}
	dir := path.Dir(name)
	if err := safefs.MkdirAll(root, dir, 0o755); err != nil {
		return err
	}
	parent, err := safefs.OpenDir(root, dir)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // holds no data
	err = linkInto(parent, source, path.Base(name))
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return putCopy(root, source, name) // another file system, or one without links, or too many
}

func putCopy(root *os.Root, source, name string) error {
	in, err := os.OpenFile(source, os.O_RDONLY|noFollow|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if _, err := safefs.Copy(root, tempName, in, 0o644); err != nil {
		return err
	}
	return root.Rename(tempName, name)
}
