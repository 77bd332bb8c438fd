package unit

import (
	"strconv"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/fault"
)

// maxQuoted bounds what a message repeats of a foreign text, in bytes.
const maxQuoted = 80

// quote makes a foreign text fit to be shown: cut, and without control characters.
func quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	most := maxQuoted
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strconv.Quote(s[:most] + "…")
}

// noUnit is the fault for a name that nothing has.
func (r *Registry) noUnit(name string, found []found) *fault.Error {
	names := r.uploads()
	for _, f := range found {
		names = append(names, f.name)
	}
	err := fault.New(fault.NotFound, "there is no unit %s", quote(name))
	if near := nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("put its directory where the server looks for units, or upload it")
}

// nearest returns the known name that was most likely meant, or "".
func nearest(name string, known []string) string {
	best, bestDistance := "", len(name)/3+2
	for _, k := range known {
		if d := fault.Distance(name, k); d < bestDistance && d < len(k) {
			best, bestDistance = k, d
		}
	}
	return best
}
