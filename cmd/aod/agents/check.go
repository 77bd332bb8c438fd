package agents

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/check"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	a2acheck "github.com/agent-on-demand/aod/internal/peer/a2apeer/check"
)

// targetsVariable is the environment variable with the agents to check if the command line
// names none.
const targetsVariable = "AGENT_CONTRACT_TARGETS"

// checkAgentFlags are the flags of check-agent.
type checkAgentFlags struct {
	a2a       bool
	json      bool
	tokenFile string
	inputs    string
	timeout   time.Duration
}

// CheckAgentCommand is `aod check-agent`.
func CheckAgentCommand(env *cli.Env) *cobra.Command {
	var flags checkAgentFlags
	cmd := &cobra.Command{
		Use:   "check-agent URL[=TASK]...",
		Short: "Hold anybody's agent against the agent HTTP contract, or the A2A protocol",
		Long: `Call agents by the agent HTTP contract, sync and streaming, and judge every rule of it.
TASK is a task type that the agent knows; it runs a few times, in the mode DEMO. Without
arguments the agents are those in ` + targetsVariable + `, a list with commas.
With --a2a the agents are of the A2A protocol: card, errors, streams and cancelling are judged.
A task of theirs runs up to three times, and there is no TASK.
Exit code 1 when a rule is broken.`,
		Example: `  aod check-agent http://127.0.0.1:8000=WORD_STATS
  aod check-agent https://agents.example.com=LIT_RETRIEVAL --token-file token --json
  aod check-agent --a2a https://agents.example.com`,
		RunE: func(cmd *cobra.Command, args []string) error { return checkAgents(cmd.Context(), env, args, flags) },
	}
	set := cmd.Flags()
	set.BoolVar(&flags.a2a, "a2a", false, "the agents speak the A2A protocol, in version 1.0 or 0.3")
	set.BoolVar(&flags.json, "json", false, "print the reports as JSON")
	// This flag hides the global one, whose token is for AOD's own server.
	set.StringVar(&flags.tokenFile, "token-file", "", "the file that holds the agents' token")
	set.StringVar(&flags.inputs, "inputs", "",
		"the file that holds the task's inputs, a JSON object; with --a2a its message, prompt, query or text is "+
			"sent as text")
	set.DurationVar(&flags.timeout, "timeout", check.DefaultTimeout,
		"how long one call may take, or with --a2a one task")
	return cmd
}

func checkAgents(ctx context.Context, env *cli.Env, args []string, flags checkAgentFlags) error {
	targets, err := targetsOf(args)
	if err != nil {
		return err
	}
	opts, err := flags.options()
	if err != nil {
		return err
	}
	reports := make([]check.Report, 0, len(targets))
	for _, target := range targets {
		if opts.Call.Token != "" && target.Plain() {
			return fault.New(fault.Input, "the token would go to %q where everybody on the way can read it",
				target.URL).
				WithHint("name the agent by https, or check it without a token")
		}
		report, err := flags.check(ctx, target, opts)
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	return showReports(env, reports, flags.json)
}

// check holds one agent against its protocol.
func (f checkAgentFlags) check(ctx context.Context, target check.Target, opts check.Options) (check.Report, error) {
	switch {
	case !f.a2a:
		return check.Agent(ctx, target, opts)
	case target.TaskType != "":
		return check.Report{}, fault.New(fault.Input, "an agent of the A2A protocol has no task type: %q",
			target.TaskType).
			WithHint("write its address alone, and what it is sent into a file for --inputs")
	}
	return a2acheck.Agent(ctx, a2acheck.Options{
		Call:   a2apeer.Options{URL: target.URL, PlainHTTP: opts.Call.PlainHTTP, Token: opts.Call.Token},
		Inputs: json.RawMessage(opts.Inputs), Timeout: opts.Call.Timeout,
	})
}

// targetsOf reads the agents to check, or those of the environment if none are named.
func targetsOf(args []string) ([]check.Target, error) {
	var targets []check.Target
	for _, arg := range args {
		target, err := check.ParseTarget(arg)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	if len(args) > 0 {
		return targets, nil
	}
	targets, err := check.ParseTargets(os.Getenv(targetsVariable))
	if err == nil && len(targets) == 0 {
		err = fault.New(fault.Input, "aod check-agent takes the address of at least one agent").
			WithHint("name them as URL=TASK, or in " + targetsVariable)
	}
	return targets, err
}

// options reads the files that the flags name. A user may type an http address: the
// requests contain no secret, unless there is a token.
func (f checkAgentFlags) options() (check.Options, error) {
	opts := check.Options{Call: agenthttp.Options{PlainHTTP: true, Timeout: f.timeout}}
	if f.timeout <= 0 {
		return opts, fault.New(fault.Input, "--timeout must be positive").
			WithHint("write a duration with its unit, such as 30s")
	}
	if f.tokenFile != "" {
		token, err := cli.ReadSmall(f.tokenFile)
		if err != nil || token == "" {
			return opts, fault.Wrap(fault.Input, err, "no token can be read from the file %q", f.tokenFile).
				WithHint("write the token alone into it, on one line")
		}
		opts.Call.Token = agenthttp.Secret(token)
	}
	if f.inputs != "" {
		inputs, err := readInputs(f.inputs)
		if err != nil {
			return opts, err
		}
		opts.Inputs = inputs
	}
	return opts, nil
}

// readInputs reads a file that holds one JSON object.
func readInputs(path string) (agenthttp.Object, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "--inputs can't be read")
	}
	var inputs agenthttp.Object
	if err := inputs.UnmarshalJSON(raw); err != nil {
		return nil, fault.Wrap(fault.Input, err, "the file %q of --inputs can't be used", path).
			WithHint("it has to be one JSON object")
	}
	return inputs, nil
}

func showReports(env *cli.Env, reports []check.Report, asJSON bool) error {
	return cli.Judge(env, reports, slices.ContainsFunc(reports, check.Report.Failed), asJSON, func() {
		for i, report := range reports {
			if i > 0 {
				env.Out.Line("")
			}
			_ = report.WriteTable(env.Out) // the reader may have gone
		}
	})
}
