package capsule

import "regexp"

var (
	secretName  = regexp.MustCompile(`(?i)(^|[_-])(token|secret|passwd|password|pwd|credential|(api|access|private|secret)_?key|auth|pat)s?($|[_-])`)
	secretValue = regexp.MustCompile(`^(sk-|gh[pousr]_|github_pat_|xox[abpr]-|AKIA|AIza|glpat-|eyJ[A-Za-z0-9_-]+\.|Bearer )[A-Za-z0-9._-]{8,}|-----BEGIN `)
	noSecret    = regexp.MustCompile(`^([0-9.]*|true|false|/.*|.*\$\{.*)$`)
)

// looksSecret reports whether an environment variable seems to hold a secret: by the form of
// its value, or by its name. A number, a path and a placeholder are none.
func looksSecret(name, value string) bool {
	return secretValue.MatchString(value) || secretName.MatchString(name) && !noSecret.MatchString(value)
}
