package au

import (
	"maps"
	"slices"
	"strings"
)

// DefaultStdinBytes is the default limit of a unit's stdin (specification, section 8.1).
const DefaultStdinBytes = 50 << 20

// command writes the arguments in the one form that every unit should accept: flags first,
// then the prompt.
func (r *argReader) command() Command {
	cmd := Command{ModelPath: r.given[modelPath]}
	for _, name := range r.order {
		p, _ := r.parameter(name)
		cmd.Args = append(cmd.Args, p.flag(r.given[name])...)
		if p.Env() != "" {
			r.env[p.Env()] = r.given[name]
		}
	}
	if r.positional != nil {
		cmd.Args = append(cmd.Args, positional(*r.positional)...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		cmd.Env = append(cmd.Env, name+"="+r.env[name])
	}
	return cmd
}

// flag writes a value as the specification's examples do, "--name value", or as
// "--name=value" if the value could be read as a flag. A true boolean is the flag alone.
// "=false" is written only if omitting it would mean something else, since many parsers
// don't accept it.
func (p Parameter) flag(value string) []string {
	name := "--" + p.Name
	switch {
	case p.Type == TypeBoolean && value == "true":
		return []string{name}
	case p.Type == TypeBoolean && !p.Required && p.Default != true:
		return nil
	case p.Type == TypeBoolean || strings.HasPrefix(value, "-"):
		return []string{name + "=" + value}
	}
	return []string{name, value}
}

// positional writes a prompt so that it can't be read as anything else.
func positional(text string) []string {
	if strings.HasPrefix(text, "-") || text == "true" || text == "false" {
		return []string{"--", text}
	}
	return []string{text}
}
