package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"strings"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
)

const (
	// hugeBytes is more than a unit takes (specification, section 8.1).
	hugeBytes = orchestrator.DefaultStdinBytes + 1<<20
	// headroom is what a unit gets beyond what it needed for the sample, when it has to do
	// with little: less than the huge input, which it can't keep in memory then.
	headroom = 32 << 20

	canaryVariable = "AOD_CHECK_CANARY"

	missingModel = "/models/no-such-model"
	// climbingModel leads to a file that every sandbox has, and that is no model.
	climbingModel = "/tmp/../etc/hosts"
)

// trySample starts the unit with a good input, twice.
func (k *auCheck) trySample(ctx context.Context, command au.Command) error {
	if k.sample == nil {
		return nil
	}
	for _, s := range []au.Scenario{au.ScenarioSample, au.ScenarioAgain} {
		if err := k.trial(ctx, s, started(command, bytes.NewReader(k.sample))); err != nil {
			return err
		}
	}
	return nil
}

// tryInputs starts the unit with what no unit should be given.
func (k *auCheck) tryInputs(ctx context.Context, command au.Command) error {
	for s, stdin := range map[au.Scenario]io.Reader{
		au.ScenarioEmpty: strings.NewReader(""), au.ScenarioCorrupt: bytes.NewReader(noFormat()), au.ScenarioHuge: k.huge(),
	} {
		if err := k.trial(ctx, s, started(command, stdin)); err != nil {
			return err
		}
	}
	return nil
}

func (k *auCheck) tryLittleMemory(ctx context.Context, command au.Command) error {
	sample, tried := k.seen[au.ScenarioSample]
	if !tried {
		return nil
	}
	little, problem := littleMemory(sample)
	if problem != "" {
		k.leave(problem, au.ScenarioLittleMemory)
		return nil
	}
	trial := started(command, k.huge())
	trial.MemoryBytes = little
	return k.trial(ctx, au.ScenarioLittleMemory, trial)
}

// littleMemory is enough for the sample and not for an input that is kept whole.
func littleMemory(sample orchestrator.Observed) (int64, string) {
	switch {
	case sample.ExitCode != 0 || sample.TimedOut || sample.PeakMemory == nil:
		return 0, "it isn't known how much memory it needs for the sample"
	case *sample.PeakMemory+headroom >= sample.MemoryLimit:
		return 0, "its own limit of memory leaves little already"
	}
	return *sample.PeakMemory + headroom, ""
}

// trySecrets gives the unit an input that is neither JSON nor what most formats begin with,
// a variable and a prompt, none of which should come out at its stderr.
func (k *auCheck) trySecrets(ctx context.Context) error {
	input, key := rand.Text(), rand.Text()
	canaries := []string{input, key}
	call := k.call()
	call.Env = map[string]string{canaryVariable: key}
	command := au.Command{Args: k.args, Env: []string{canaryVariable + "=" + key}}
	if k.card != nil {
		if _, ok := k.card.Parameter("prompt"); ok {
			call.Prompt = rand.Text()
			canaries = append(canaries, call.Prompt)
		}
		var err error
		if command, err = k.card.Args(call); err != nil { // as when the prompt was given already
			k.leave(fault.Public(err).Msg, au.ScenarioSecret)
			return nil // it is told with the checks
		}
	}
	if err := k.trial(ctx, au.ScenarioSecret, started(command, strings.NewReader(`{"key": `+input+"\n"))); err != nil {
		return err
	}
	seen := k.seen[au.ScenarioSecret]
	seen.Canaries = canaries
	k.seen[au.ScenarioSecret] = seen
	return nil
}

// tryModels gives the unit models that it can't have. Only the sample makes it look at them.
func (k *auCheck) tryModels(ctx context.Context) error {
	if k.card == nil || !k.card.NeedsModel() || k.sample == nil {
		return nil
	}
	call := k.call()
	call.ModelPath = missingModel
	missing, err := k.card.Args(call)
	if err != nil { // as when it was given already
		k.leave(fault.Public(err).Msg, au.ScenarioMissingModel, au.ScenarioTraversal)
		return nil // it is told with the checks
	}
	if err := k.trial(ctx, au.ScenarioMissingModel, started(missing, bytes.NewReader(k.sample))); err != nil {
		return err
	}
	return k.trial(ctx, au.ScenarioTraversal, started(climbing(missing), bytes.NewReader(k.sample)))
}

// climbing puts another path in the place of the missing model's. No user may give it.
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
