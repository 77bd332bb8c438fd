package check

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/internal/checklist"
)

// cardTime bounds the printing of the model card.
const cardTime = 10 * time.Second

// Options configure the check of a unit.
type Options struct {
	Name      string        // the unit's, for messages
	Args      []string      // for the unit, at each start but the first
	ModelPath string        // of the model in the unit's sandbox; "" is none
	Sample    []byte        // an input that the unit should take; nil is a tiny one of a media type of its card
	Timeout   time.Duration // of one start
	Source    *Source       // nil if there is only the program
}

// Unit starts a unit about twenty times, in every scenario that is possible for it, and judges
// all Checks by the observations. A unit that can't be started is started once. The error is
// one of the Starter's, or an Input fault for a sample or an argument that the unit's card
// doesn't take.
func Unit(ctx context.Context, starter Starter, opts Options) (checklist.Results, error) {
	e := newExamination(starter, opts)
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	return e.report(), nil
}

// examination starts a unit in every scenario that is possible for it.
type examination struct {
	Options
	starter Starter
	card    *au.Card // nil unless it gave one that can be used
	seen    map[Scenario]Observed
	untried map[Scenario]string // why not
}

func newExamination(starter Starter, opts Options) *examination {
	return &examination{Options: opts, starter: starter, seen: map[Scenario]Observed{}, untried: map[Scenario]string{}}
}

// run makes all observations. The error is a fault of ours, or of the user's input.
func (e *examination) run(ctx context.Context) error {
	if err := e.describe(ctx); err != nil || e.seen[ScenarioDescribe].notStarted() {
		return err
	}
	if err := e.describeAgain(ctx); err != nil {
		return err
	}
	if e.Sample == nil {
		e.Sample = sampleFor(e.card)
	}
	if e.Sample == nil {
		e.leave("name a file that the unit should take with --sample FILE",
			append([]Scenario{ScenarioDamaged, ScenarioLittleMemory, ScenarioMissingModel, ScenarioTraversal},
				alike...)...)
	}
	command, problem, err := e.command()
	if err != nil {
		return err
	}
	if problem != "" {
		e.leave(problem,
			append([]Scenario{
				ScenarioEmpty, ScenarioCorrupt, ScenarioHuge, ScenarioDamaged, ScenarioLittleMemory,
				ScenarioSecret,
			}, alike...)...)
		return e.tryModels(ctx)
	}
	for _, try := range []func(context.Context, au.Command) error{
		e.trySample, e.tryInputs, e.tryLittleMemory,
		e.tryArguments,
	} {
		if err := try(ctx, command); err != nil {
			return err
		}
	}
	if err := e.trySecrets(ctx); err != nil {
		return err
	}
	return e.tryModels(ctx)
}

// leave records why scenarios aren't tried.
func (e *examination) leave(why string, scenarios ...Scenario) {
	for _, s := range scenarios {
		e.untried[s] = why
	}
}

func (e *examination) describe(ctx context.Context) error {
	asked := e.asksForCard()
	asked.Open = true
	if err := e.trial(ctx, ScenarioDescribe, asked); err != nil {
		return err
	}
	seen := e.seen[ScenarioDescribe]
	if seen.notStarted() {
		return nil // the checks say so
	}
	card, err := au.ReadCard(seen.Stdout)
	if err != nil { // the checks judge it
		return nil //nolint:nilerr // as the line above says
	}
	e.card = card
	if kind := au.Sniff(e.Sample); e.Sample != nil && !card.Accepts(kind) {
		return fault.New(fault.Input, "the sample is %s, which %s doesn't take", kind, card.Name).
			WithHint("its model card says what it takes: aod au describe")
	}
	return nil
}

func (e *examination) asksForCard() Trial {
	return Trial{Args: []string{"--describe"}, Timeout: min(cardTime, e.Timeout)}
}

// describeAgain asks for the card two more times: it may be another one.
func (e *examination) describeAgain(ctx context.Context) error {
	for _, s := range describes[1:] {
		if err := e.trial(ctx, s, e.asksForCard()); err != nil {
			return err
		}
	}
	return nil
}

// command is the command that starts the unit, or the problem with it. The user's arguments
// must fit the card.
func (e *examination) command() (command au.Command, problem string, err error) {
	if e.card == nil {
		return au.Command{Args: e.Args}, "", nil
	}
	command, err = e.card.Args(e.call())
	if err == nil || len(e.Args) > 0 || e.ModelPath != "" {
		return command, "", err
	}
	if p, ok := e.card.Parameter("model-path"); ok && p.Required {
		return command, "it needs a model: name one with --model-path PATH", nil
	}
	return command, fault.Public(err).Msg + ": give what it needs after --", nil
}

func (e *examination) call() au.Call {
	return au.Call{Args: e.Args, ModelPath: e.ModelPath}
}

// trial starts the unit once and keeps the observation. The canaries are what it is given that
// it has to keep to itself.
func (e *examination) trial(ctx context.Context, s Scenario, trial Trial, canaries ...string) error {
	trial.Scenario = s
	if trial.Timeout == 0 {
		trial.Timeout = e.Timeout
	}
	seen, err := e.starter.Start(ctx, trial)
	if err == nil {
		seen.Canaries = canaries
		e.seen[s] = seen
	}
	return err
}

func started(command au.Command, stdin io.Reader) Trial {
	return Trial{Args: command.Args, Env: command.Env, Stdin: stdin}
}

// report judges the observations. For a check without its scenario it says what the
// scenario would need.
func (e *examination) report() checklist.Results {
	o := Observation{
		Runs: map[Scenario]Run{}, Source: e.Source, TimeLimit: e.Timeout,
		MemoryLimit: e.seen[ScenarioDescribe].MemoryLimit,
	}
	for s, seen := range e.seen {
		o.Runs[s] = seen.Run
	}
	results := Judge(o)
	for i := range results {
		result := &results[i]
		for s, problem := range e.untried {
			if result.Why == fmt.Sprintf("%s was not tried", s) {
				result.Why += ": " + problem
			}
		}
	}
	return results
}
