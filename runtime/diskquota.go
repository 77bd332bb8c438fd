package runtime

import (
	"errors"
	"os"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/runtime/quota"
)

// ownEntries is how many files of ours are in the project of a sandbox.
const ownEntries = 64

// ProjectKeeper is an engine that may keep programs from moving their files into another project of the kernel's
// quotas: a program could fill those of others.
type ProjectKeeper interface {
	// KeepsProjects reports whether it does, as far as it knows from the containers that it made.
	KeepsProjects() bool
}

// ownProject gives directories the project of dir. Where that fails, looking is all that bounds them.
func ownProject(dir string, trees ...string) {
	project, err := quota.New(dir)
	for _, tree := range trees {
		if err == nil {
			err = project.Give(tree)
		}
	}
}

// OwnTree makes an empty directory with a project of its own, in which a session keeps files.
func OwnTree(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return unwritable(err)
	}
	ownProject(dir, dir)
	return nil
}

// releaseFiles takes what is to leave the sandbox's directories out of its project: the next one could have that. The
// uppermost directory comes last, so that it says whether all is done.
func releaseFiles(root *os.Root, keep map[string]bool) error {
	if !quota.Of(root.Name()).Given() {
		return nil
	}
	for name, isDir := range keep {
		if name == "." {
			continue
		}
		if err := releaseFile(root, name, isDir); err != nil {
			return err
		}
	}
	return releaseFile(root, ".", true)
}

func releaseFile(root *os.Root, name string, isDir bool) error {
	var f *os.File
	var err error
	if isDir {
		f, err = safefs.OpenDir(root, name)
	} else {
		f, _, err = safefs.OpenRegular(root, name)
	}
	if err != nil {
		return err
	}
	return errors.Join(quota.Take(f), f.Close())
}
