package workspace

import (
	"cmp"
	"encoding/json"
	"path"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// MaxChangesBytes bounds a changes.json.
const MaxChangesBytes = 128 << 20

var sha256Hex = lazyregexp.New(`^[0-9a-f]{64}$`)

// ReadChanges reads a changes.json that may be a stranger's. What it returns can be applied to a
// directory: each path lies in it and in no .git, none stands twice or below another file. The
// error is an Input fault.
func ReadChanges(raw []byte) (api.Changes, error) {
	var found api.Changes
	if err := strictjson.Check(raw, strictjson.Rules{}); err != nil {
		return found, fault.Wrap(fault.Input, err, "the changes can't be read: %s", err)
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return found, fault.Wrap(fault.Input, err, "the changes don't have their form")
	}
	return found, CheckChanges(found)
}

// CheckChanges holds changes against what ReadChanges promises.
func CheckChanges(found api.Changes) error {
	left := map[string]bool{} // files that are there afterwards
	seen := map[string]bool{}
	for _, c := range found.Changes {
		if why := changeProblem(c); why != "" {
			return fault.New(fault.Input, "a change is refused: %s %s", fault.Quote(c.Path), why).
				WithHint("nothing was written; don't trust this server's changes")
		}
		if seen[c.Path] {
			return twiceInChanges(c.Path)
		}
		seen[c.Path] = true
		if c.Op != api.OpDelete {
			left[c.Path] = true
		}
	}
	for name := range left {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if left[dir] {
				return twiceInChanges(dir)
			}
		}
	}
	return nil
}

func twiceInChanges(name string) error {
	return fault.New(fault.Input, "the changes are refused: %s stands twice in them, or as a file and a directory",
		fault.Quote(name))
}

// changeProblem says why a change is none; "" if it is one.
func changeProblem(c api.Change) string {
	if why := nameProblem(c.Path); why != "" {
		return why
	}
	switch {
	case inGit(c.Path), ours(c.Path):
		return "isn't a file that a run can change"
	case c.Mode != modeFile && c.Mode != modeProgram && c.Mode != modeLink:
		return "has an unknown mode"
	case c.Op != api.OpAdd && c.Op != api.OpModify && c.Op != api.OpDelete:
		return "has an unknown operation"
	case c.ModeWas != "" &&
		(c.Op != api.OpModify || c.ModeWas != modeFile && c.ModeWas != modeProgram && c.ModeWas != modeLink):
		return "had an unknown mode"
	case (c.Op != api.OpAdd) != sha256Hex().MatchString(c.Before),
		(c.Op != api.OpDelete) != sha256Hex().MatchString(c.After),
		c.Op == api.OpAdd && c.Before != "", c.Op == api.OpDelete && c.After != "":
		return "hasn't the hashes that it needs"
	case c.Size < 0:
		return "has no size"
	}
	return ""
}

// before returns what the change found; the zero Entry where nothing was there.
func before(c api.Change) Entry {
	if c.Op == api.OpAdd {
		return Entry{}
	}
	return Entry{Path: c.Path, Mode: cmp.Or(c.ModeWas, c.Mode), SHA256: c.Before}
}

// after returns what the change makes; the zero Entry where nothing is left.
func after(c api.Change) Entry {
	if c.Op == api.OpDelete {
		return Entry{}
	}
	return Entry{Path: c.Path, Mode: c.Mode, SHA256: c.After}
}
