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

// OwnProject makes what the program can write to a project of its own for the kernel's quotas, where the file system
// keeps these. What is written for it from then on is in it, too, and nothing can be moved or linked there from
// elsewhere. So /io/input is left out: its files are ours, and others have them as well.
func (l Layout) OwnProject() {
	trees := []string{
		"io", "io/output", "io/handoff", "io/handoff/outgoing", "io/handoff/incoming", "outgoing",
		"workspace",
	}
	for i := range trees {
		trees[i] = l.path(trees[i])
	}
	ownProject(l.Dir, trees...)
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

// projects are those of the directories that the program can write to. Those that outlive the sandbox have one each,
// and looking bounds what is in all of them together.
func (l Layout) projects() (all []quota.Project) {
	for _, dir := range []string{l.path("io"), l.Home, l.Kept} {
		if dir == "" || l.remote != nil {
			continue
		}
		if project := quota.Of(dir); project.Given() {
			all = append(all, project)
		}
	}
	return all
}

// boundDisk has the kernel keep the sandbox's disk limit, where it can. The program doesn't run yet.
func (s *Sandbox) boundDisk() {
	if keeper, ok := s.engine.(ProjectKeeper); !ok || !keeper.KeepsProjects() {
		return
	}
	if project := quota.Of(s.layout.path("io")); project.Given() && s.layout.remote == nil {
		for _, file := range []string{"aod/report", "aod/" + stdoutName} {
			_ = project.Give(s.layout.path(file)) // looking bounds it else
		}
	}
	for _, project := range s.layout.projects() {
		_ = project.Limit(s.limits.DiskBytes, watchEntries+ownEntries) // as above
	}
}

// unboundDisk ends what boundDisk began, once the container is gone. A session goes on with what it keeps.
func (s *Sandbox) unboundDisk() {
	if project := quota.Of(s.layout.path("io")); project.Given() {
		_ = project.Limit(0, 0) // the next start of a server sweeps
	}
}

// refusedWrite returns what the kernel refused to write because of the sandbox's disk limit; nil: nothing.
func (s *Sandbox) refusedWrite() *LimitError {
	for _, project := range s.layout.projects() {
		switch bytes, files := project.Met(); {
		case bytes:
			return overBytes(s.limits.DiskBytes)
		case files:
			return overEntries()
		}
	}
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
