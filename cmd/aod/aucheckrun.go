package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
)

// cardTime is what a unit has to print its model card.
const cardTime = 10 * time.Second

// auCheck starts a unit in every scenario that can be had of it.
type auCheck struct {
	orchestrator *orchestrator.Orchestrator
	unit         *capsule.Capsule
	args         []string // for the unit, each time but the first
	model        string   // of this machine; "" is none
	sample       []byte   // that the unit should take; nil is none
	timeout      time.Duration
	view         *view

	card    *au.Card // nil unless it gave a good one
	seen    map[au.Scenario]orchestrator.Observed
	untried map[au.Scenario]string // why not
}

// run makes all observations. The error is a fault of ours, or of what the user gave.
func (k *auCheck) run(ctx context.Context) error {
	if err := k.describe(ctx); err != nil {
		return err
	}
	if k.sample == nil {
		k.sample = sampleFor(k.card)
	}
	if k.sample == nil {
		k.leave("name a file that the unit should take with --sample FILE",
			au.ScenarioSample, au.ScenarioAgain, au.ScenarioLittleMemory, au.ScenarioMissingModel, au.ScenarioTraversal)
	}
	command, problem, err := k.command()
	if err != nil {
		return err
	}
	if problem != "" {
		k.leave(problem, au.ScenarioSample, au.ScenarioAgain, au.ScenarioEmpty, au.ScenarioCorrupt, au.ScenarioHuge, au.ScenarioLittleMemory, au.ScenarioSecret)
		return k.tryModels(ctx)
	}
	for _, try := range []func(context.Context, au.Command) error{k.trySample, k.tryInputs, k.tryLittleMemory} {
		if err := try(ctx, command); err != nil {
			return err
		}
	}
	if err := k.trySecrets(ctx); err != nil {
		return err
	}
	return k.tryModels(ctx)
}

// leave notes why scenarios aren't tried.
func (k *auCheck) leave(why string, scenarios ...au.Scenario) {
	for _, s := range scenarios {
		k.untried[s] = why
	}
}

func (k *auCheck) describe(ctx context.Context) error {
	asked := orchestrator.AUTrial{Args: []string{"--describe"}, Open: true, Timeout: min(cardTime, k.timeout)}
	if err := k.trial(ctx, au.ScenarioDescribe, asked); err != nil {
		return err
	}
	seen := k.seen[au.ScenarioDescribe]
	if seen.StartError != "" {
		return fault.New(fault.Capsule, "the program of %q can't be started: %s", k.unit.Name, seen.StartError).
			WithHint("check the ENTRYPOINT of its Dockerfile")
	}
	card, err := au.ParseCard(seen.Stdout)
	if err != nil { // which is judged
		return nil //nolint:nilerr // as the line above says
	}
	k.card = card
	if kind := au.Sniff(k.sample); k.sample != nil && !card.Accepts(kind) {
		return fault.New(fault.Input, "the sample is %s, which %s doesn't take", kind, card.Name).
			WithHint("its model card says what it takes: aod au describe")
	}
	return nil
}

// command is what the unit is started with, or the problem why it can't be. What the user
// gave has to fit.
func (k *auCheck) command() (command au.Command, problem string, err error) {
	if k.card == nil {
		return au.Command{Args: k.args}, "", nil
	}
	command, err = k.card.Args(k.call())
	if err == nil || len(k.args) > 0 || k.model != "" {
		return command, "", err
	}
	if p, ok := k.card.Parameter("model-path"); ok && p.Required {
		return command, "it needs a model: name one with --model-path PATH", nil
	}
	return command, fault.Public(err).Msg + ": give what it needs after --", nil
}

func (k *auCheck) call() au.Call {
	call := au.Call{Args: k.args}
	if k.model != "" {
		call.ModelPath = orchestrator.AUModelPath(k.model)
	}
	return call
}

// trial starts the unit once and keeps what came of it.
func (k *auCheck) trial(ctx context.Context, s au.Scenario, trial orchestrator.AUTrial) error {
	k.view.waitFor("trying %s", s)
	if trial.Timeout == 0 {
		trial.Timeout = k.timeout
	}
	trial.ModelPath, trial.Observe = k.model, k.watch
	seen, err := k.orchestrator.Try(ctx, k.unit, trial)
	if err == nil {
		k.seen[s] = seen
	}
	return err
}

// watch shows how the unit is built. What it logs is none of the user's own doing.
func (k *auCheck) watch(e orchestrator.Event) {
	if e.Build != nil {
		k.view.event(e)
	}
}

func started(command au.Command, stdin io.Reader) orchestrator.AUTrial {
	return orchestrator.AUTrial{Args: command.Args, Env: command.Env, Stdin: stdin}
}

// report judges what was seen, and says of checks that lack their scenario what it would take.
func (k *auCheck) report(source *au.Source) au.Report {
	o := au.Observation{
		Runs: map[au.Scenario]au.Run{}, Source: source, TimeLimit: k.timeout,
		MemoryLimit: k.seen[au.ScenarioDescribe].MemoryLimit,
	}
	for s, seen := range k.seen {
		o.Runs[s] = seen.Run
	}
	report := au.Judge(o)
	for i := range report.Results {
		result := &report.Results[i]
		for s, problem := range k.untried {
			if result.Why == fmt.Sprintf("%s was not tried", s) {
				result.Why += ": " + problem
			}
		}
	}
	return report
}
