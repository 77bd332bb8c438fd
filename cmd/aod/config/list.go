package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/bundled"
	"github.com/agent-on-demand/aod/capsule/outside"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// several is a list of texts: a list in the file, a flag that may be repeated, and one text
// with separators in the environment.
type several interface {
	value
	check(item string) (string, error) // returns the item in its normal form
	setAll(items []string) error
}

// list is a list of texts of one form.
type list struct {
	into      *[]string
	name      string
	advice    string
	separator string // between items in the environment
	form      func(item string) (string, error)
}

func (v list) kind() string                      { return v.name }
func (v list) hint() string                      { return v.advice }
func (v list) String() string                    { return strings.Join(*v.into, v.separator) }
func (v list) check(item string) (string, error) { return v.form(item) }

func (v list) set(text string) error {
	items := strings.Split(text, v.separator)
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return v.setAll(slices.DeleteFunc(items, func(item string) bool { return item == "" }))
}

// setAll drops duplicates and keeps the first.
func (v list) setAll(items []string) error {
	kept := make([]string, 0, len(items))
	for _, item := range items {
		item, err := v.form(item)
		if err != nil {
			return err
		}
		if !slices.Contains(kept, item) {
			kept = append(kept, item)
		}
	}
	*v.into = kept
	return nil
}

// paths is a list of directories; in the environment it is written like PATH.
type paths struct{ list }

func directories(into *[]string) paths {
	return paths{list{into, "paths", "write a list of directories", string(filepath.ListSeparator), checkPath}}
}

func (v paths) root(base string) {
	for i, name := range *v.into {
		(*v.into)[i] = absolute(base, name)
	}
}

// unitNames is a list of names of units.
func unitNames(into *[]string) list {
	return list{into, "names", "write a list of units' names, such as [hello, csv-report]", ",", checkUnitName}
}

// packages is a list of packages of Debian.
func packages(into *[]string) list {
	return list{
		into, "packages", "write a list of packages of Debian, such as [python3-numpy]", ",",
		func(name string) (string, error) { return name, bundled.CheckPackage(name) },
	}
}

// teamNames is a list of names of teams.
func teamNames(into *[]string) list {
	return list{
		into, "names", "write a list of teams' names, such as [research, ops]", ",",
		func(name string) (string, error) { return name, api.CheckTeam(name) },
	}
}

// machineLabels is a list of labels of a machine.
func machineLabels(into *[]string) list {
	return list{
		into, "labels", "write a list of labels, such as [gpu, zone=b]", ",",
		func(label string) (string, error) { return label, api.CheckLabel(label) },
	}
}

func checkUnitName(name string) (string, error) { return name, api.CheckUnitName(name) }

// modelNames is a list of names of models.
func modelNames(into *[]string) list {
	return list{
		into, "names", "write a list of models' names, such as [small, claude]", ",",
		func(name string) (string, error) {
			return name, catalog.CheckName(name)
		},
	}
}

// upstreamNames is a list of names of upstreams.
func upstreamNames(into *[]string) list {
	return list{
		into, "names", "write a list of upstreams' names, such as [weather], or [any]", ",",
		func(name string) (string, error) {
			return name, outside.CheckUpstream(name)
		},
	}
}

// secretNames is a list of names of secrets.
func secretNames(into *[]string) list {
	return list{into, "names", "write a list of secrets' names, such as [weather-key], or [any]", ",", checkSecretName}
}

// words is a list of some of a few words. what is said of each of them.
func words(into *[]string, kind string, known []string, what string) list {
	return list{into, kind, "write a list of " + strings.Join(known, ", "), ",", func(name string) (string, error) {
		if !slices.Contains(known, name) {
			return "", fmt.Errorf("%s isn't %s", fault.Quote(name), what)
		}
		return name, nil
	}}
}
