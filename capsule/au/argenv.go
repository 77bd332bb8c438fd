package au

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

var envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment reads the variables. A variable that stands for a flag is read as that flag.
func (r *argReader) environment(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pointer := "/env/" + strictjson.Escape(fmt.Sprintf("%.80s", name))
		switch problem := unprintable(env[name]); {
		case !envName().MatchString(name):
			r.fail(pointer, "letters, digits and _, and no digit at its start", "this can't be the name of a variable")
		case problem != "":
			r.fail(pointer, "", "the value of the variable %s", problem)
		case name == modelPathEnv:
			r.set(modelPath, env[name], pointer)
		default:
			r.env[name] = env[name]
		}
	}
}

// unprintable says why a text can't be an argument. Engines take arguments as JSON.
func unprintable(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "has a NUL in it, which no argument can have"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	}
	return ""
}
