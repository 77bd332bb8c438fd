package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// The kernel takes 128 KiB an argument, and refuses the program beyond that.
const (
	maxArgument  = 100 << 10
	maxArguments = 512 << 10 // all of them
)

// endOfOptions is the argument behind which none is an option.
const endOfOptions = "--"

// Command returns the arguments of a run, the program first: the command with its flags, and
// what resumes a session. The error is an Input fault for a value that can't be an argument:
// over 100 KiB, with a NUL byte, or one that begins with "-" where the program would take it
// for an option.
func Command(c *Config, v Values) ([]string, error) {
	var argv []string
	open := true // options are still looked for
	size := 0
	for i, template := range c.templates(v.Resume) {
		elements := element(template, v)
		if i > 0 && open && strings.HasPrefix(template, "{") {
			if err := noOption(template, elements); err != nil {
				return nil, err
			}
		}
		for _, e := range elements {
			if err := checkArgument(template, e); err != nil {
				return nil, err
			}
			size += len(e)
		}
		open = open && template != endOfOptions
		argv = append(argv, elements...)
	}
	if size > maxArguments {
		return nil, fault.New(fault.Input, "the arguments have %d bytes together, at most %d can be given", size,
			maxArguments).
			WithHint("give the agent its message by input: stdin or input: file")
	}
	return argv, nil
}

// templates are the elements of the command. Flags and what resumes stand before the end of
// the options, where there is one.
func (c *Config) templates(resume bool) []string {
	more := c.flags()
	if resume {
		more = append(more, c.Resume...)
	}
	end := slices.Index(c.Command, endOfOptions)
	if end < 0 {
		end = len(c.Command)
	}
	return slices.Concat(c.Command[:end], more, c.Command[end:])
}

// flags are the elements of Flags. A flag that is true stands alone, one that is false or null
// not at all.
func (c *Config) flags() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		switch value := c.Flags[name].(type) {
		case bool:
			if value {
				all = append(all, "--"+name)
			}
		case nil:
		default:
			all = append(all, "--"+name, text(value))
		}
	}
	return all
}

// element returns what an element of the command becomes: one argument, and where it is
// {files} alone one for each file.
func element(template string, v Values) []string {
	if template == "{files}" {
		return v.Files
	}
	return []string{fill(template, v.valueOf)}
}

// noOption refuses values at the beginning of an argument that look like an option.
func noOption(template string, elements []string) error {
	for _, e := range elements {
		if strings.HasPrefix(e, "-") {
			return fault.New(fault.Input,
				"what %s stands for begins with \"-\": the program would take it for an option", template).
				WithHint("write it otherwise, or put -- before %s in agent.command, or use input: stdin", template)
		}
	}
	return nil
}

func checkArgument(template, value string) error {
	switch {
	case len(value) > maxArgument:
		return fault.New(fault.Input, "the argument %s has %d bytes, at most %d can be given", fault.Quote(template),
			len(value), maxArgument).
			WithHint("use input: stdin or input: file in agent.yaml")
	case strings.IndexByte(value, 0) >= 0:
		return fault.New(fault.Input, "the argument %s has a NUL byte in it", fault.Quote(template)).
			WithHint("leave it out")
	}
	return nil
}

// Environment returns the variables of a run, "NAME=value", sorted.
func Environment(c *Config, v Values) []string {
	env := make([]string, 0, len(c.Env))
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, fmt.Sprintf("%s=%s", name, fill(c.Env[name], v.valueOf)))
	}
	return env
}
