package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// unitFileKeys are the settings of a unit that mean the same to a command as to a server.
var unitFileKeys = []string{"env", "network", "may_call", "may_not_call", "timeout"}

// LoadUnit reads a file with what an operator gives one unit: the keys env, network, may_call,
// may_not_call, timeout and limits, as they stand below unit.NAME in the server's file. All
// problems are returned together as the findings of an Input fault.
func LoadUnit(name string) (UnitConfig, error) {
	work, err := workingDirectory()
	if err != nil {
		return UnitConfig{}, err
	}
	f := file{loader: newLoader(""), name: name, base: absolute(work, filepath.Dir(name))}
	u := f.readUnit()
	if len(f.findings) > 0 {
		return UnitConfig{}, problems(f.findings)
	}
	return u, nil
}

func (f *file) readUnit() (u UnitConfig) {
	root := f.root("name a YAML file")
	if root == nil {
		return u
	}
	rows := u.settings()
	setDefaults(rows)
	keys := f.readers("", rows)
	for _, key := range append(slices.Collect(maps.Keys(keys)), "unit", "policy", "a2a", "upstreams") {
		if !slices.Contains(unitFileKeys, key) {
			keys[key] = f.onlyServer(key)
		}
	}
	keys["limits"] = f.block("limits", u.Limits.settings())
	f.object("", root.Line, root, keys)
	return u
}

// onlyServer returns a reader that refuses a setting of the server.
func (f *file) onlyServer(key string) reader {
	return func(line int, _ *yaml.Node) {
		f.report(f.at(line), key+" has a meaning in the server's file only",
			"this file takes "+strings.Join(unitFileKeys, ", ")+" and limits")
	}
}
