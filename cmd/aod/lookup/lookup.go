// Package lookup finds units on this machine: by a directory, or by a name in the directories of --units. It must not
// know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package lookup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Load reads the capsule of a directory or a name.
func Load(env *cli.Env, arg string) (*capsule.Capsule, error) {
	dir, err := Dir(env, arg)
	if err != nil {
		return nil, err
	}
	c, err := capsule.Load(dir)
	if err != nil {
		return nil, err
	}
	for _, warning := range c.Warnings {
		env.Note("%s %s", env.Err.Style(ui.Yellow, "warning:"), ui.Printable(warning.String()))
	}
	return c, nil
}

// Callees finds the units that a capsule may call: its neighbours, and those in the
// directories of --units. Each is read once, so that all calls of a run see the same.
func Callees(env *cli.Env, caller *unit.Unit, c *capsule.Capsule) cli.Finder {
	var mu sync.Mutex
	known := map[string]*unit.Unit{c.Name: caller}
	return func(_ context.Context, name string) (*unit.Unit, error) {
		mu.Lock()
		defer mu.Unlock()
		if found := known[name]; found != nil {
			return found, nil
		}
		found, err := Callee(append([]string{filepath.Dir(c.Dir)}, env.Units...), name)
		if err != nil {
			return nil, err
		}
		known[name] = unit.Of(found)
		return known[name], nil
	}
}

// Callee finds a unit that another one may call in one of these directories.
func Callee(places []string, name string) (*capsule.Capsule, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	for _, place := range places {
		found, err := inPlace(place, name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		return found, err
	}
	return nil, fault.New(fault.NotFound, "there is no capsule %q beside the one that runs", name).
		WithHint("name the directory above it with --units")
}

// Dir returns a directory as it is, and looks for a name in the directories of --units. A
// text with a separator in it is never a name.
func Dir(env *cli.Env, arg string) (string, error) {
	info, err := os.Stat(arg)
	if err == nil && info.IsDir() {
		return arg, nil
	}
	if err == nil {
		return "", fault.New(fault.NotFound, "%q is a file, not a capsule's directory", arg).
			WithHint("name the directory that holds its Dockerfile")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.NotFound, err, "%q can't be read", arg)
	}
	if !strings.ContainsRune(arg, filepath.Separator) {
		for _, units := range env.Units {
			dir := filepath.Join(units, arg)
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				return dir, nil
			}
			if found, err := named(units, arg); err == nil {
				return found.Dir, nil
			}
		}
	}
	return "", fault.New(fault.NotFound, "there is no capsule %q", arg).
		WithHint("%s", didYouMean(env, arg))
}

// inPlace finds the unit of a name below a directory: in the subdirectory of that name, or
// in one whose agent.yaml has the name.
func inPlace(place, name string) (*capsule.Capsule, error) {
	found, err := capsule.Load(filepath.Join(place, name))
	if err == nil && found.Name == name || err != nil && !fault.Is(err, fault.NotFound) {
		return found, err
	}
	return named(place, name)
}

// named finds the unit with this name in its agent.yaml. It skips units that can't be
// loaded.
func named(place, name string) (*capsule.Capsule, error) {
	entries, _ := os.ReadDir(place) // an unreadable directory has no such unit
	for _, entry := range entries {
		dir := filepath.Join(place, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, "agent.yaml")); err != nil {
			continue
		}
		if found, err := capsule.Load(dir); err == nil && found.Name == name {
			return found, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no unit %q in %s", name, place)
}

// didYouMean returns the hint for a directory or a name that no unit has: the nearest one,
// else what to give.
func didYouMean(env *cli.Env, arg string) string {
	if near := nearUnit(env, arg); near != "" {
		return "did you mean " + near + "?"
	}
	return "give its directory, or name the directory above it with --units; `aod init " + filepath.Base(arg) +
		"` makes a new one"
}

// nearUnit returns the argument that was most likely meant: the path of a unit's directory
// that lies where the argument points to, or a unit's name in a directory of --units.
func nearUnit(env *cli.Env, arg string) string {
	clean := filepath.Clean(arg)
	if near := fault.Nearest(filepath.Base(clean), Names(filepath.Dir(clean), false)); near != "" {
		return strings.TrimSuffix(arg, filepath.Base(clean)+trailing(arg)) + near
	}
	var names []string
	if !strings.ContainsRune(arg, filepath.Separator) {
		for _, units := range env.Units {
			names = append(names, Names(units, true)...)
		}
	}
	return fault.Nearest(arg, names)
}

// trailing returns the separators at the end of a path.
func trailing(path string) string {
	return path[len(strings.TrimRight(path, string(filepath.Separator))):]
}

// Names lists the directories below one that look like units', and where named is set
// also the names that their agent.yaml gives them.
func Names(place string, named bool) []string {
	entries, _ := os.ReadDir(place) // an unreadable directory has no such unit
	var names []string
	for _, entry := range entries {
		dir := filepath.Join(place, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, "agent.yaml")); err != nil {
			continue
		}
		names = append(names, entry.Name())
		if !named {
			continue
		}
		if c, err := capsule.Load(dir); err == nil && c.Name != entry.Name() {
			names = append(names, c.Name)
		}
	}
	return names
}
