package flow

import (
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// seen are the variables that expressions see at a place.
type seen struct{ names []string }

func (s seen) with(names ...string) seen {
	return seen{slices.Concat(s.names, names)}
}

// taken can't be the name of a map's item.
var taken = []string{
	"input", "state", "index", "visits", "error", "out", "errors", "run",
	"nil", "null", "true", "false", "let", "in", "not", "and", "or", "if", "else", "matches", "contains",
}

var variable = lazyregexp.New(`^[a-z][a-z0-9_]{0,39}$`)

func (r *reader) checkItem(pointer, name string) {
	switch {
	case slices.Contains(taken, name):
		r.report(pointer, "as can't be "+fault.Quote(name)+": it has a meaning in expressions",
			"give the item another name")
	case !variable().MatchString(name):
		r.report(pointer, fault.Quote(name)+" is no name of a variable",
			"write small letters, digits and _, at most 40, a letter first")
	}
}

// variables reports those that a template names and that aren't there.
func (r *reader) variables(t *expr.Template, known []string) {
	for _, ref := range t.References() {
		if slices.Contains(known, ref.Path[0]) {
			continue
		}
		r.report(ref.Pointer, ref.Position+": there is no variable "+fault.Quote(ref.Path[0])+" here",
			missing(ref.Path[0], known))
	}
}

func missing(name string, known []string) string {
	switch name {
	case "out", "run", "errors":
		return name + " is there after the run: in set, action and collect"
	case "error":
		return "error is there in set, action and fallback; after an error edge it is state.error"
	case "item", "index":
		return "an item and its index are there inside a map"
	}
	if near := fault.Nearest(name, known); near != "" {
		return "did you mean " + near + "? a text in an expression stands in quotes"
	}
	return "there are " + strings.Join(known, ", ") + "; a text in an expression stands in quotes"
}
