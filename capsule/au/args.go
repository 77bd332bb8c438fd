package au

import (
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
)

// Limits on a unit's arguments and variables. Linux takes 128 KiB in one argument and, by
// default, 2 MiB in all.
const (
	MaxArgs     = 256 // and as many variables
	MaxArgBytes = 128<<10 - 1
	MaxAllBytes = 1 << 20 // arguments and variables together
)

// Call is a user's input to a unit beside its stdin.
type Call struct {
	Args      []string          // without the program's name; no shell reads them
	Prompt    string            // passed as --prompt; "" is none
	ModelPath string            // the model's file in the unit's sandbox; "" is none
	Env       map[string]string // further variables
}

// Command is how a unit is started. Each string is one argument, whatever it contains.
type Command struct {
	Args      []string // without the program
	Env       []string // NAME=value, sorted by name
	ModelPath string   // absolute and clean, to be mounted read-only; "" is none
}

// Args checks a call against the card, before anything starts, and returns the command that
// starts the unit. All parameters are passed as flags, [OPTIONS] [PROMPT] (specification,
// section 4); a model's path is passed in $MODEL_PATH as well. Flags may be given as --name
// value, --name=value or, for booleans, --name alone, and by the letters that the card names;
// the text after "--" is the prompt. Other words are passed on in their order. --prompt may
// be missing in the card, since the specification gives it to all units; every other flag
// must be there.
//
// The error is a *fault.Error: TooLarge, or Input with a finding for each problem. Their
// pointers lead into the call: /args/2, /prompt, /model_path, /env/NAME. They name flags
// and variables, never a value.
func (c *Card) Args(call Call) (Command, error) {
	if err := call.bounded(); err != nil {
		return Command{}, err
	}
	r := &argReader{card: c, given: map[string]string{}, typed: map[string]string{}, env: map[string]string{}}
	r.read(call.Args)
	r.set(modelPath, call.ModelPath, "/model_path")
	r.set(prompt, call.Prompt, "/prompt")
	r.environment(call.Env)
	r.missing()
	if len(r.findings) > 0 {
		first := r.findings[0]
		refused := fault.New(fault.Input, "the arguments don't fit the unit: %s", first.String()).
			WithHint("its model card says what it takes").WithFindings(r.findings)
		refused.Foreign = append(refused.Foreign, first.Foreign)
		return Command{}, refused
	}
	return r.command(), nil
}

// bounded refuses a call that is too large to start a program with.
func (call Call) bounded() error {
	if len(call.Args) > MaxArgs || len(call.Env) > MaxArgs {
		return fault.New(fault.TooLarge, "there are more than %d arguments or variables", MaxArgs).
			WithHint("send data on stdin")
	}
	all := 0
	for _, s := range slices.Concat(call.Args, []string{call.Prompt, call.ModelPath},
		slices.Collect(maps.Keys(call.Env)), slices.Collect(maps.Values(call.Env))) {
		if len(s) > MaxArgBytes {
			return fault.New(fault.TooLarge, "an argument has %d bytes, the limit is %d", len(s), MaxArgBytes).
				WithHint("send data on stdin")
		}
		all += len(s) + 1
	}
	if all > MaxAllBytes {
		return fault.New(fault.TooLarge, "the arguments have %d bytes in all, the limit is %d", all, MaxAllBytes).
			WithHint("send data on stdin")
	}
	return nil
}
