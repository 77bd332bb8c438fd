package main

import (
	"fmt"
	"path/filepath"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
)

// missingGrants warns of each unit that a capsule may call and that is neither beside it nor
// in a directory of --units: where it will run there may be one.
func (a *app) missingGrants(c *capsule.Capsule) []fault.Finding {
	places := append([]string{filepath.Dir(c.Dir)}, a.units...)
	var findings []fault.Finding
	for i, tool := range c.Tools {
		if tool.Capsule == "" || tool.Capsule == c.Name {
			continue
		}
		if _, err := a.loadCallee(places, tool.Capsule); !fault.Is(err, fault.NotFound) {
			continue // there is one, though it may have problems of its own
		}
		findings = append(findings, fault.Finding{
			File: "tools.yaml", Pointer: fmt.Sprintf("/%d/capsule", i), Warning: true,
			Message: fmt.Sprintf("there is no unit %q beside this one", tool.Capsule),
			Hint:    a.grantHint(places, tool.Capsule),
		})
	}
	return findings
}

func (a *app) grantHint(places []string, name string) string {
	var known []string
	for _, place := range places {
		known = append(known, a.unitNames(place, true)...)
	}
	if near := fault.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "if it is elsewhere, name the directory above it with --units"
}
