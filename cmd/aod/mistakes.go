package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
)

// flagFault says which flag of a command line is wrong, and what it takes.
func flagFault(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var none *pflag.ValueRequiredError
	help := "see " + cmd.CommandPath() + " --help"
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = name[1:]
		}
		return fault.New(fault.Input, "%s has no flag %s", cmd.CommandPath(), fault.Quote(name)).
			WithHint("%s", fault.Suggest(name, flagNames(cmd), help))
	case errors.As(err, &value):
		flag := value.GetFlag()
		return fault.New(fault.Input, "--%s can't be %s", flag.Name, fault.Quote(value.GetValue())).
			WithHint("%s", takes(flag.Value.Type(), help))
	case errors.As(err, &none):
		return fault.New(fault.Input, "--%s needs a value", strings.TrimLeft(none.GetSpecifiedName(), "-")).
			WithHint("%s", help)
	}
	return fault.New(fault.Input, "%s", err).WithHint("%s", help)
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// takes says what a flag of a type takes.
func takes(kind, help string) string {
	switch kind {
	case "duration":
		return "write a duration with its unit, such as 30s"
	case "size":
		return "write a size, such as 512MiB or 2GiB"
	case "int", "int64", "uint", "uint64":
		return "write a whole number, such as 3"
	case "bool":
		return "write true or false, or the flag alone"
	}
	return help
}

// checkGroups refuses flags that exclude one another.
func checkGroups(cmd *cobra.Command) error {
	err := cmd.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	text := err.Error() // it ends with: [one other] were all set
	text, _, _ = strings.Cut(text[strings.LastIndex(text, "[")+1:], "]")
	set := strings.Fields(text)
	return fault.New(fault.Input, "--%s exclude one another", strings.Join(set, " and --")).
		WithHint("leave one of them out; see %s --help", cmd.CommandPath())
}
