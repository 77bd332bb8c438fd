package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Place is where the skills of a capsule lie.
const Place = "src/ai/skills"

// Bounds, which the library in the sandbox has, too.
const (
	maxSkills        = 100
	maxFiles         = 1000 // of one skill
	maxFolders       = 100  // likewise
	maxDocumentBytes = 64 << 10
	maxFrontBytes    = 16 << 10
	maxFileBytes     = 256 << 10 // that are read of a file
	maxName          = 64
	maxDescription   = 1024 // letters
	maxCompatibility = 500  // likewise
)

// Skill is a folder that keeps the rules.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description"` // in one line
	Scripts     []Script `json:"-"`
}

// Script is a file of scripts/.
type Script struct {
	Name        string // in the skill: scripts/…
	Interpreter string // what runs it, by its first line or its ending; "": neither says it
}

// reader gathers what is wrong.
type reader struct{ findings []fault.Finding }

func (r *reader) report(file, message, hint string) {
	r.findings = append(r.findings, fault.Finding{File: file, Message: message, Hint: hint})
}

func (r *reader) warn(file, message, hint string) {
	r.findings = append(r.findings, fault.Finding{File: file, Message: message, Hint: hint, Warning: true})
}

// Read returns the skills of a capsule in the order of their names, and what is wrong with them: a skill of which
// something is, is among them or isn't.
func Read(capsule *os.Root) ([]Skill, []fault.Finding) {
	root, err := safefs.Descend(capsule, Place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r reader
	if err != nil {
		r.unreadable(Place, err)
		return nil, r.findings
	}
	defer func() { _ = root.Close() }() // holds no data
	entries, whole := r.entries(root, ".", Place, maxSkills)
	if !whole {
		r.report(Place, fmt.Sprintf("it holds more than %d skills", maxSkills), "give one agent fewer skills")
	}
	var found []Skill
	for _, entry := range entries {
		at := path.Join(Place, entry.Name())
		switch {
		case entry.IsDir():
			if skill, ok := r.skill(root, entry.Name()); ok {
				found = append(found, skill)
			}
		case !entry.Type().IsRegular():
			r.report(at, "it is "+safefs.Describe(entry.Type())+", which isn't followed", "put the folder itself there")
		}
	}
	return found, r.findings
}

// entries returns what is in a folder, by name, and whether that is all. What begins with a dot is left alone.
func (r *reader) entries(root *os.Root, folder, at string, most int) (entries []fs.DirEntry, whole bool) {
	errEnough := errors.New("enough")
	err := safefs.EachEntry(root, folder, func(entry fs.DirEntry) error {
		if strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		if len(entries) == most {
			return errEnough
		}
		entries = append(entries, entry)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		r.unreadable(at, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, !errors.Is(err, errEnough)
}

func (r *reader) unreadable(at string, err error) {
	if irregular := new(safefs.Irregular); errors.As(err, &irregular) {
		r.report(at, "it "+irregular.Error(), "put the thing itself there, without a link")
		return
	}
	r.report(at, "it can't be read: "+safefs.Reason(err), "make it readable")
}
