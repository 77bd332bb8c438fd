package check

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/capsule/au"
)

// tryArguments starts the unit with arguments that it should not repeat on stderr. They don't
// fit its card, or nearly don't, so it decides what to do with them.
func (e *examination) tryArguments(ctx context.Context, command au.Command) error {
	canary := rand.Text()
	for _, try := range []struct {
		scenario Scenario
		more     []string
	}{
		{ScenarioSecretArguments, e.textArguments(canary)},
		{ScenarioWrongArgument, e.wrongArgument(canary)},
		{ScenarioUnknownArgument, []string{"--aod-no-such-flag=" + canary}},
	} {
		if len(try.more) == 0 {
			continue
		}
		with := command
		with.Args = slices.Concat(try.more, command.Args)
		if err := e.trial(ctx, try.scenario, started(with, e.anySample()), canary); err != nil {
			return err
		}
	}
	return nil
}

// anySample is the sample, or some text where there is none, or none that the unit ends with.
func (e *examination) anySample() io.Reader {
	if e.Sample == nil || e.seen[ScenarioSample].TimedOut {
		return strings.NewReader("text\n")
	}
	return bytes.NewReader(e.Sample)
}

// textArguments gives a text to every parameter that takes one and has none yet. A model's path
// has scenarios of its own, as has the prompt.
func (e *examination) textArguments(text string) (args []string) {
	for _, p := range e.freeParameters() {
		if p.Type == au.TypeString && p.Name != "model-path" && p.Name != "prompt" {
			args = append(args, p.Flag(), text)
		}
	}
	return args
}

// wrongArgument gives a text to a parameter that takes a number.
func (e *examination) wrongArgument(text string) []string {
	for _, p := range e.freeParameters() {
		if p.Type == au.TypeInteger || p.Type == au.TypeNumber {
			return []string{p.Flag(), text}
		}
	}
	return nil
}

// freeParameters are those of the card that the user gave no value.
func (e *examination) freeParameters() (free []au.Parameter) {
	if e.card == nil {
		return nil
	}
	for _, p := range e.card.Config {
		given := slices.ContainsFunc(e.Args, func(arg string) bool {
			flag, _, _ := strings.Cut(arg, "=")
			return flag == p.Flag() || p.Short != "" && flag == "-"+p.Short
		})
		if !given {
			free = append(free, p)
		}
	}
	return free
}
