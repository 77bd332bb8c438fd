package check

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
)

const (
	// hugeBytes is more than a unit takes (specification, section 8.1).
	hugeBytes = au.DefaultStdinBytes + 1<<20
	// headroom is the memory that a unit gets beyond what it needed for the sample, in the
	// scenario of little memory. It is less than the huge input, so the unit can't keep
	// that in memory.
	headroom = 32 << 20

	canaryVariable = "AOD_CHECK_CANARY"

	missingModel = "/models/no-such-model"
	// climbingModel leads to a file that every sandbox has, and that isn't a model.
	climbingModel = "/tmp/../etc/hosts"
)

// trySample starts the unit with a valid input, five times.
func (e *examination) trySample(ctx context.Context, command au.Command) error {
	if e.Sample == nil {
		return nil
	}
	for i, s := range alike {
		if err := e.trial(ctx, s, started(command, bytes.NewReader(e.Sample))); err != nil {
			return err
		}
		if e.seen[s].TimedOut { // it would again
			e.leave("it didn't end the time before", alike[i+1:]...)
			return nil
		}
	}
	return nil
}

// tryInputs starts the unit with invalid inputs. What it refuses should not appear on its
// stderr, so there are canaries where a message would begin to repeat it.
func (e *examination) tryInputs(ctx context.Context, command au.Command) error {
	canary := rand.Text()
	for s, stdin := range map[Scenario]io.Reader{
		ScenarioEmpty: strings.NewReader(""), ScenarioCorrupt: bytes.NewReader(corrupt(canary)), ScenarioHuge: e.huge(),
		ScenarioDamaged: e.damaged(canary),
	} {
		if stdin == nil {
			continue
		}
		if err := e.trial(ctx, s, started(command, stdin), canary); err != nil {
			return err
		}
	}
	return nil
}

// corrupt is an input of no format that begins with a text.
func corrupt(text string) []byte { return append([]byte(text), noFormat()...) }

// damaged is the first half of the sample, and then what no format has.
func (e *examination) damaged(text string) io.Reader {
	if e.Sample == nil {
		return nil
	}
	return bytes.NewReader(append(bytes.Clone(e.Sample[:len(e.Sample)/2]), corrupt(text)...))
}

func (e *examination) tryLittleMemory(ctx context.Context, command au.Command) error {
	sample, tried := e.seen[ScenarioSample]
	if !tried {
		return nil
	}
	little, problem := littleMemory(sample)
	if problem != "" {
		e.leave(problem, ScenarioLittleMemory)
		return nil
	}
	trial := started(command, e.huge())
	trial.MemoryBytes = little
	return e.trial(ctx, ScenarioLittleMemory, trial)
}

// littleMemory is enough memory for the sample, but not for a unit that keeps the whole
// input.
func littleMemory(sample Observed) (int64, string) {
	switch {
	case sample.ExitCode != 0 || sample.TimedOut || sample.PeakMemory == nil:
		return 0, "it isn't known how much memory it needs for the sample"
	case *sample.PeakMemory+headroom >= sample.MemoryLimit:
		return 0, "its own limit of memory leaves little already"
	}
	return *sample.PeakMemory + headroom, ""
}

// trySecrets gives the unit an input that is neither JSON nor of a common format, a
// variable and a prompt. None of them should appear on its stderr.
func (e *examination) trySecrets(ctx context.Context) error {
	input, key := rand.Text(), rand.Text()
	canaries := []string{input, key}
	call := e.call()
	call.Env = map[string]string{canaryVariable: key}
	command := au.Command{Args: e.Args, Env: []string{canaryVariable + "=" + key}}
	if e.card != nil {
		if _, ok := e.card.Parameter("prompt"); ok {
			call.Prompt = rand.Text()
			canaries = append(canaries, call.Prompt)
		}
		var err error
		if command, err = e.card.Args(call); err != nil { // for instance, the prompt was given already
			e.leave(fault.Public(err).Msg, ScenarioSecret)
			return nil // the report says so
		}
	}
	return e.trial(ctx, ScenarioSecret, started(command, strings.NewReader(`{"key": `+input+"\n")), canaries...)
}

// tryModels gives the unit invalid model paths. Only with the sample does it look at them.
func (e *examination) tryModels(ctx context.Context) error {
	if e.card == nil || !e.card.NeedsModel() || e.Sample == nil {
		return nil
	}
	call := e.call()
	call.ModelPath = missingModel
	missing, err := e.card.Args(call)
	if err != nil { // for instance, it was given already
		e.leave(fault.Public(err).Msg, ScenarioMissingModel, ScenarioTraversal)
		return nil // the report says so
	}
	if err := e.trial(ctx, ScenarioMissingModel, started(missing, bytes.NewReader(e.Sample))); err != nil {
		return err
	}
	return e.trial(ctx, ScenarioTraversal, started(climbing(missing), bytes.NewReader(e.Sample)))
}

// climbing replaces the path of the missing model. A user may not give such a path.
func climbing(command au.Command) au.Command {
	swap := func(list []string) []string {
		swapped := make([]string, len(list))
		for i, s := range list {
			swapped[i] = strings.ReplaceAll(s, missingModel, climbingModel)
		}
		return swapped
	}
	return au.Command{Args: swap(command.Args), Env: swap(command.Env)}
}

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
