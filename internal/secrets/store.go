package secrets

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Kept is what may be told of a secret in Dir.
type Kept struct {
	Name    string
	Changed time.Time
	Problem *fault.Error // why it can't be used; nil: it can
}

// NameRule is what the names of secrets match.
var NameRule = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9._-]{0,127}$`)

func checkName(name string) error {
	if NameRule().MatchString(name) {
		return nil
	}
	return fault.New(fault.Input, "%s is not a valid secret name", fault.Quote(name)).
		WithHint("a name has up to 128 letters, digits, `.`, `_` and `-`, and begins with a letter or `_`")
}

// Set keeps a secret in Dir, which is made if it is missing. It replaces one of that name. A line
// end after the value isn't part of it. The error is an Input fault for a name that is none, and
// for a value that is empty or too large.
func (s Files) Set(name string, value io.Reader) error {
	if err := checkName(name); err != nil {
		return err
	}
	raw, err := valueOf(name, value)
	if err != nil {
		return err
	}
	err = os.MkdirAll(s.Dir, 0o700)
	if err == nil {
		err = safefs.Replace(filepath.Join(s.Dir, name), raw, safefs.ReplaceOptions{Mode: 0o600, Synced: true})
	}
	if err != nil {
		return s.unwritable(name, err)
	}
	return nil
}

// Remove removes a secret of Dir. The error is NotFound if there is none of the name.
func (s Files) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(s.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "there is no secret %q", name).WithHint("`aod secret ls` lists them")
	}
	if err == nil {
		err = safefs.Sync(s.Dir)
	}
	if err != nil {
		return s.unwritable(name, err)
	}
	return nil
}

func (s Files) unwritable(name string, err error) error {
	return fault.Wrap(fault.Unavailable, err, "the secret %q can't be changed in %s", name, s.Dir).
		WithHint("is the directory yours, and is there room on its disk?")
}

// List returns what may be told of the secrets in Dir, sorted by name.
func (s Files) List() ([]Kept, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the secrets in %s can't be read", s.Dir)
	}
	var all []Kept
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || checkName(e.Name()) != nil {
			continue // removed meanwhile, or nothing that could be named
		}
		kept := Kept{Name: e.Name(), Changed: info.ModTime()}
		if _, err := s.Read(e.Name()); err != nil {
			kept.Problem = fault.Public(err)
		}
		all = append(all, kept)
	}
	return all, nil
}
