package capsule

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

var secretVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// notSecret are variables by which a program is started or made to run another one.
var notSecret = []string{"HOME", "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_OPTIONS"}

// checkOutside finds what the schema can't say about what a unit has of the world outside:
// upstreams and secrets.
func (u *units) checkOutside(file agentYAML, kind Kind) {
	if kind.elsewhere {
		return // both have no meaning there, which is said
	}
	for i, name := range file.Upstreams {
		if err := outside.CheckUpstream(name); err != nil {
			public := fault.Public(err)
			u.report("/upstreams/"+strconv.Itoa(i), "upstreams: "+public.Msg, public.Hint)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Secrets)) {
		u.checkSecret(name)
	}
	if len(file.Secrets) == 0 {
		return
	}
	u.checkStart(file, kind)
}

func (u *units) checkSecret(variable string) {
	at := "/secrets/" + strictjson.Escape(variable)
	switch {
	case !secretVariable().MatchString(variable):
		u.report(at, "secrets: "+fault.Quote(variable)+" can't be the name of a variable",
			"write {VARIABLE: name-of-the-secret}")
	case strings.HasPrefix(variable, "AOD_") || slices.Contains(notSecret, variable):
		u.report(at, fmt.Sprintf("secrets: %s isn't a secret's variable", variable),
			"write one that the program reads its key from, such as API_KEY")
	}
}

// checkStart finds programs that can't be told secrets when they start.
func (u *units) checkStart(file agentYAML, kind Kind) {
	switch {
	case kind.Name == KindMCP:
		u.report("/secrets", "secrets: an MCP server gets none",
			"have it ask the service through an upstream, which keeps the key outside")
	case kind.Name == KindAgent && file.Command != nil && file.Command.Protocol != "":
		u.report("/secrets", "secrets: an agent that is talked with gets none",
			"have it ask the service through an upstream, which keeps the key outside")
	case file.Runtime != "":
		u.report("/secrets", "secrets: with an isolation runtime none can be given",
			"leave runtime out, or use an upstream, which keeps the key outside")
	}
}

var (
	secretName = lazyregexp.New(`(?i)(^|[_-])(token|secret|passwd|password|pwd|credential|(api|access|private|` +
		`secret)_?key|auth|pat)s?($|[_-])`)
	secretValue = lazyregexp.New(`^(sk-|gh[pousr]_|github_pat_|xox[abpr]-|AKIA|AIza|glpat-|eyJ[A-Za-z0-9_-]+\.|` +
		`Bearer )[A-Za-z0-9._-]{8,}|-----BEGIN `)
	noSecret = lazyregexp.New(`^([0-9.]*|true|false|/.*|.*\$\{.*)$`)
)

// looksSecret reports whether an environment variable seems to hold a secret: by the form of
// its value, or by its name. A number, a path and a placeholder are none.
func looksSecret(name, value string) bool {
	return secretValue().MatchString(value) || secretName().MatchString(name) && !noSecret().MatchString(value)
}
