package remote

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// tracer makes the spans of an attempt. They are dropped unless the program sets an exporter.
var tracer = otel.Tracer("github.com/agent-on-demand/aod/orchestrator/kind/remote")

// Options are the settings of Agents.
type Options struct {
	Logger  *slog.Logger  // ids, sizes and times only; nil discards
	Secrets secrets.Files // of the agents, by the names in their agent.yaml
	Door    *egress.Door  // the way to the agents of uploaded units; nil: one without exceptions
}

// Agents is the kind of remote units: agents that run elsewhere.
type Agents struct {
	*clients
	logger *slog.Logger
}

// New returns a kind that has not connected to anything.
func New(opts Options) *Agents {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Door == nil {
		opts.Door = egress.New(egress.Options{})
	}
	return &Agents{clients: newClients(opts.Secrets, opts.Door, opts.Logger), logger: opts.Logger}
}

// Open implements run.Opener: there is nothing to open.
func (*Agents) Open(run.Home) error { return nil }

// Close implements run.Opener: it closes the connections that nobody uses.
func (a *Agents) Close() error {
	a.close()
	return nil
}

// Check implements run.Kind. Beyond the contract it refuses files that are too large to be sent along.
func (*Agents) Check(_ run.Request, ready run.Input) error { return checkInputFiles(ready) }

// Execution implements run.Kind.
func (a *Agents) Execution(r *run.Run) run.Execution { return &execution{Run: r, agents: a} }

// Accept implements run.Acceptor. It refuses an upload that names a secret of the operator:
// its author could have the secret sent anywhere. It also refuses one whose agent is at no public address.
func (a *Agents) Accept(ctx context.Context, u *unit.Unit) error {
	agent, err := agentOf(u)
	switch {
	case err != nil:
		return nil //nolint:nilerr // there is none to be asked
	case agent.Auth != nil:
		return fault.New(fault.Forbidden,
			"the uploaded unit %q names a secret, which only units in directories of the server get", u.Name).
			WithHint("keep it in one of the server's `units` directories")
	}
	return a.checkUploaded(ctx, agent)
}

// agentOf returns the address and the settings of a unit's agent.
func agentOf(u *unit.Unit) (*capsule.Remote, error) {
	if c, ok := u.Definition.(*capsule.Capsule); ok && c.Remote != nil {
		return c.Remote, nil
	}
	return nil, fault.New(fault.Input, "%q says of no agent where it is", u.Name)
}
