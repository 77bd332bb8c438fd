package capsule

import "github.com/agent-on-demand/aod/internal/lazyregexp"

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
