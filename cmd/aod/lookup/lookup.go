// Package lookup finds units on this machine: by a directory, or by a name in the directories of --units. It must not
// know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package lookup

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/bundled"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// IsName reports whether an argument DIR|NAME is a unit's name. What can be none is a directory: any path with a
// separator in it, "." and "..".
func IsName(arg string) bool { return api.CheckUnitName(arg) == nil }

// Load reads the capsule of an argument DIR|NAME on this machine.
func Load(env *cli.Env, arg string) (*capsule.Capsule, error) {
	dir, err := Dir(env, arg)
	if err != nil {
		return nil, err
	}
	return LoadDir(env, dir)
}

// LoadDir reads the capsule of a directory.
func LoadDir(env *cli.Env, dir string) (*capsule.Capsule, error) {
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
		found, err := Callee(env, append([]string{filepath.Dir(c.Dir)}, env.Units...), name)
		if err != nil {
			return nil, err
		}
		known[name] = unit.Of(found)
		return known[name], nil
	}
}

// Callee finds a unit that another one may call in one of these directories, or among those that come with AOD.
func Callee(env *cli.Env, places []string, name string) (*capsule.Capsule, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	dir, err := find(env, places, name)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, fault.New(fault.NotFound, "there is no capsule %q beside the one that runs", name).
			WithHint("name the directory above it with --units")
	}
	return capsule.Load(dir)
}

// Dir returns the directory of an argument DIR|NAME on this machine. A name is looked for in the directories of
// --units, then in the current one. With a server a name is that of its unit, which isn't here.
func Dir(env *cli.Env, arg string) (string, error) {
	if !IsName(arg) {
		return existing(env, arg)
	}
	if env.Server == "" {
		return named(env, arg)
	}
	hint := "leave out --server and unset AOD_SERVER"
	if dir := here(env, arg); dir != "" {
		hint = "name the directory, " + dir + ", or " + hint
	}
	return "", fault.New(fault.Input, "%q is the name of a unit on %s, and this command works on this machine", arg,
		env.Server).WithHint("%s", hint)
}

// OnlyHere returns the error about a server's unit that isn't there, with the directory of this machine that was
// meant, if there is one, and what naming that does.
func OnlyHere(env *cli.Env, name string, err error, does string) error {
	dir := ""
	if fault.Is(err, fault.NotFound) {
		dir = here(env, name)
	}
	if dir == "" {
		return err
	}
	return fault.New(fault.NotFound, "there is no unit %q on the server, only a directory here", name).
		WithHint("`%s` %s", dir, does)
}

// Uploads is what naming a directory does to commands that run units on a server.
const Uploads = "uploads it"

// here returns the path of the directory that a name would mean without a server, or "".
func here(env *cli.Env, name string) string {
	quiet := *env
	quiet.Quiet = true
	dir, err := named(&quiet, name)
	if err != nil || !isUnit(dir) {
		return ""
	}
	return path(dir)
}

// path writes a directory so that it isn't a name.
func path(dir string) string {
	if IsName(dir) {
		return "." + string(filepath.Separator) + dir
	}
	return dir
}

// named finds the directory of a unit's name on this machine.
func named(env *cli.Env, name string) (string, error) {
	dir, err := find(env, env.Units, name)
	if err != nil {
		return "", err
	}
	if dir == "" {
		return existing(env, name)
	}
	if isUnit(name) && !registry.SameDir(dir, name) {
		env.Note("%s is the unit in %s; the directory here is %s", name, ui.Printable(dir), path(name))
	}
	return dir, nil
}

func isUnit(dir string) bool {
	dirs, err := registry.Dirs(dir)
	return err == nil && slices.Contains(dirs, dir)
}

// existing returns a directory as it is, or says what is there instead.
func existing(env *cli.Env, dir string) (string, error) {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return dir, nil
	}
	if err == nil {
		return "", fault.New(fault.NotFound, "%q is a file, not a capsule's directory", dir).
			WithHint("name the directory that holds its Dockerfile")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.NotFound, err, "%q can't be read", dir)
	}
	return "", fault.New(fault.NotFound, "there is no capsule %q", dir).WithHint("%s", didYouMean(env, dir))
}

// find returns the directory of the unit with a name in directories of units, or "". Two are a Conflict fault that
// names both. One that comes with AOD is nowhere else.
func find(env *cli.Env, places []string, name string) (string, error) {
	if strings.HasPrefix(name, api.Reserved) {
		dir, err := bundled.Dir(cli.Bundled(env.Data), nil)
		if err != nil {
			return "", err
		}
		places = []string{dir}
	}
	var all []string
	for _, place := range places {
		dirs, _ := registry.Dirs(place) // an unreadable directory has no such unit
		for _, dir := range dirs {
			isSame := func(d string) bool { return registry.SameDir(d, dir) }
			if nameOf(dir) == name && !slices.ContainsFunc(all, isSame) {
				all = append(all, dir)
			}
		}
	}
	if len(all) > 1 {
		return "", fault.New(fault.Conflict, "more than one unit has the name %s: %s", name,
			strings.Join(all, " and ")).
			WithHint("name one by its directory, or give one another name in its agent.yaml")
	}
	return strings.Join(all, ""), nil
}

// nameOf returns the name of the unit in a directory. One that can't be loaded says why when it is.
func nameOf(dir string) string {
	return cmp.Or(capsule.NameOf(dir), filepath.Base(dir))
}

// didYouMean returns the hint for a directory or a name that no unit has: the nearest one,
// else what to give.
func didYouMean(env *cli.Env, arg string) string {
	if near := nearUnit(env, arg); near != "" {
		return "did you mean " + near + "?"
	}
	hint := "give its directory, or name the directory above it with --units"
	if name := filepath.Base(arg); IsName(name) {
		hint += "; `aod init " + name + "` makes a new one"
	}
	return hint
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

// Units reads the units in directories. whole is false where one can't be read: its run says why.
func Units(places []string) (units []*unit.Unit, whole bool) {
	whole = true
	for _, place := range places {
		dirs, err := registry.Dirs(place)
		whole = whole && err == nil
		for _, dir := range dirs {
			c, err := capsule.Load(dir)
			if err != nil {
				whole = false
				continue
			}
			units = append(units, unit.Of(c))
		}
	}
	return units, whole
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
