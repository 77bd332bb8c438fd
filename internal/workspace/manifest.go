package workspace

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// The modes of files, as git has them.
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeLink    = "120000"
)

// Entry is a file or a link of a project. A link's content is its target.
type Entry struct {
	Path   string `json:"path"` // relative, with slashes
	Mode   string `json:"mode"` // 100644, 100755 or 120000
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Manifest lists a project by path.
type Manifest struct {
	Entries []Entry `json:"entries"`
	Git     bool    `json:"git,omitempty"` // it came with its .git
}

// Bytes returns the size of all contents.
func (m Manifest) Bytes() (sum int64) {
	for _, e := range m.Entries {
		sum += e.Size
	}
	return sum
}

// Save writes the manifest to a file, which must not exist.
func (m Manifest) Save(path string) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return safefs.Replace(path, raw, safefs.ReplaceOptions{Mode: 0o600})
}

// LoadManifest reads a file that Save wrote.
func LoadManifest(path string) (m Manifest, err error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(raw, &m)
}

// Limits bound a project.
type Limits struct {
	Bytes int64 // of all contents; 0: 1 GiB
	Files int   // files and links; 0: 50,000
}

func (l Limits) orDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = quantity.GiB
	}
	if l.Files <= 0 {
		l.Files = 50_000
	}
	return l
}

// tally counts what is taken against the limits.
type tally struct {
	limits Limits
	files  int
	bytes  int64
}

func (t *tally) add(size int64) error {
	t.files++
	t.bytes += size
	switch {
	case t.files > t.limits.Files:
		return fault.New(fault.TooLarge, "the project has more than %d files", t.limits.Files).WithHint(leaveOut)
	case t.bytes > t.limits.Bytes:
		return fault.New(fault.TooLarge, "the project has more than %s", quantity.SizeText(t.limits.Bytes)).
			WithHint(leaveOut + ", or raise workspace.max of the agent")
	}
	return nil
}

const leaveOut = "leave out what the agent doesn't need with .aodignore"

// gitMode returns the mode of a file as git has it; "" if git has none.
func gitMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return modeLink
	case !mode.IsRegular():
		return ""
	case mode&0o100 != 0:
		return modeProgram
	}
	return modeFile
}

// permOf returns the permissions of a file with a mode of git's.
func permOf(mode string) fs.FileMode {
	if mode == modeProgram {
		return 0o755
	}
	return 0o644
}

// refused is the fault for a file that can't be part of a project.
func refused(name, why string) *fault.Error {
	return fault.New(fault.Input, "%s %s", fault.Quote(name), why).WithHint("remove it, or name it in .aodignore")
}
