package au

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// DefaultStdinBytes is the default limit of a unit's stdin (specification, section 8.1).
const DefaultStdinBytes = 50 << 20

// command writes the arguments in the one form that every unit should accept: flags first,
// then the prompt or other words.
func (r *argReader) command() Command {
	cmd := Command{ModelPath: r.given[modelPath]}
	for _, name := range r.order {
		p, _ := r.parameter(name)
		cmd.Args = append(cmd.Args, p.command(cmp.Or(r.typed[name], p.Flag()), r.given[name])...)
		if p.Env() != "" {
			r.env[p.Env()] = r.given[name]
		}
	}
	cmd.Args = append(cmd.Args, positional(r.words)...)
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		cmd.Env = append(cmd.Env, name+"="+r.env[name])
	}
	return cmd
}

// command writes a flag and its value as the specification's examples do, "--name value", or
// as "--name=value" if the value could be read as a flag. No parser reads "-n=value" as all do,
// so that is always two words. A true boolean is the flag alone. "=false" is written only if
// omitting it would mean something else, since many parsers don't accept it.
func (p Parameter) command(flag, value string) []string {
	switch {
	case p.Type == TypeBoolean && value == "true":
		return []string{flag}
	case p.Type == TypeBoolean && !p.Required && p.Default != true:
		return nil
	case p.Type == TypeBoolean || strings.HasPrefix(value, "-") && strings.HasPrefix(flag, "--"):
		return []string{flag + "=" + value}
	}
	return []string{flag, value}
}

// positional writes words so that they can't be read as anything else.
func positional(words []string) []string {
	if slices.ContainsFunc(words,
		func(w string) bool { return strings.HasPrefix(w, "-") || w == "true" || w == "false" }) {
		return append([]string{"--"}, words...)
	}
	return words
}
