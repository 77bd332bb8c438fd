package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// didYouMean returns the hint for a directory or a name that no unit has: the nearest one,
// else what to give.
func (a *app) didYouMean(arg string) string {
	if near := a.nearUnit(arg); near != "" {
		return "did you mean " + near + "?"
	}
	return "give its directory, or name the directory above it with --units; `aod init " + filepath.Base(arg) + "` makes a new one"
}

// nearUnit returns the argument that was most likely meant: the path of a unit's directory
// that lies where the argument points to, or a unit's name in a directory of --units.
func (a *app) nearUnit(arg string) string {
	clean := filepath.Clean(arg)
	if near := fault.Nearest(filepath.Base(clean), a.unitNames(filepath.Dir(clean), false)); near != "" {
		return strings.TrimSuffix(arg, filepath.Base(clean)+trailing(arg)) + near
	}
	var names []string
	if !strings.ContainsRune(arg, filepath.Separator) {
		for _, units := range a.units {
			names = append(names, a.unitNames(units, true)...)
		}
	}
	return fault.Nearest(arg, names)
}

// trailing returns the separators at the end of a path.
func trailing(path string) string {
	return path[len(strings.TrimRight(path, string(filepath.Separator))):]
}

// unitNames lists the directories below one that look like units', and where named is set
// also the names that their agent.yaml gives them.
func (a *app) unitNames(place string, named bool) []string {
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
		if c, err := a.reader().Load(dir); err == nil && c.Name != entry.Name() {
			names = append(names, c.Name)
		}
	}
	return names
}
