package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/bundled"
	"github.com/agent-on-demand/aod/cmd/aod/admin"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/mcpsessions"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/swarm"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/protocol/a2a"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
	"github.com/agent-on-demand/aod/orchestrator/quotas"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/signins"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
)

func serviceOptions(settings *reloader, home string) (opts orchestrator.Options, err error) {
	c, logger := settings.config(), settings.logger
	opts = orchestrator.Options{
		Home: home, Sources: c.Units, Logger: logger, Version: versionText(),
		Concurrency: c.Concurrency, MemoryBytes: c.Memory, Queue: c.Queue, QueueWait: c.QueueWait,
		Retries: c.Retries, RetryDelay: c.RetryDelay, MaxTimeout: c.MaxTimeout,
		Sessions: c.Sessions,
		Handoffs: handoff.Limits{
			Depth: c.HandoffDepth, Calls: c.HandoffCalls, FlowCalls: c.FlowCalls,
			ArgsBytes: c.PayloadLimit, Memory: bytegate.New(c.RequestMemory),
		},
		Mounts:       []capsuleapi.Mount{mcpMount(logger)},
		PayloadBytes: c.PayloadLimit, MinFreeDisk: c.MinFreeDisk,
		RetentionAge: c.RetentionAge, RetentionSize: c.RetentionSize, SweepInterval: c.SweepInterval,
		AuditAge: c.AuditAge, Quotas: boundsOf(c),
		Units: settingsOfUnits(c), Bounds: boundsFor(c),
	}
	opts.Limits.ResultBytes = c.PayloadLimit
	opts.Teams = teamsOf(settings.config, admin.NamedTokens(home))
	if c.Code {
		opts.Bundled, err = bundled.Dir(cli.Bundled(c.Data), c.Packages)
	}
	return opts, err
}

// settingsOfUnits are those of single units.
func settingsOfUnits(c *config.Config) map[string]units.Settings {
	all := map[string]units.Settings{}
	for name := range c.Unit {
		u := c.ForUnit(name)
		all[name] = units.Settings{
			Given: runflags.GivenOf(u), Concurrency: u.Concurrency, Queue: u.Queue, QueueWait: u.QueueWait,
			Teams: u.Teams,
		}
	}
	return all
}

// boundsOf are the most that teams and tokens may have of the server.
func boundsOf(c *config.Config) quotas.Given {
	of := func(q config.Quota, age time.Duration) quotas.Bounds {
		return quotas.Bounds{
			Slots: q.Slots, Queued: q.Queued, Sessions: q.Sessions, MCP: q.MCPSessions, Storage: q.Storage, Age: age,
		}
	}
	given := quotas.Given{Teams: map[string]quotas.Bounds{}, Tokens: map[string]quotas.Bounds{}}
	for name, t := range c.Teams {
		given.Teams[name] = of(t.Quota, t.RetentionAge)
	}
	for name, q := range c.Tokens {
		given.Tokens[name] = of(q, 0)
	}
	return given
}

// budgetOf is what a tree of runs may spend on models.
func budgetOf(c *config.Config) ledger.Amount {
	return ledger.Amount{Tokens: int64(c.ModelTokens), Cost: int64(c.ModelCost)}
}

// quotasOf are what teams and tokens may spend on models.
func quotasOf(c *config.Config) models.Quotas {
	q := models.Quotas{Teams: map[string]models.Quota{}, Tokens: map[string]models.Quota{}}
	for name, t := range c.Teams {
		q.Teams[name] = quotaOf(t.Spending)
	}
	for name, t := range c.Tokens {
		q.Tokens[name] = quotaOf(t.Spending)
	}
	return q
}

func quotaOf(s config.Spending) models.Quota {
	return models.Quota{
		Day:   ledger.Amount{Tokens: int64(s.ModelTokens.Day), Cost: int64(s.ModelCost.Day)},
		Month: ledger.Amount{Tokens: int64(s.ModelTokens.Month), Cost: int64(s.ModelCost.Month)},
	}
}

// workersOf have runs go on at other machines.
func workersOf(
	c *config.Config, home string, kept secrets.Files, engine serverEngine, nodes *swarm.Swarm,
) *workers.Feature {
	may := map[string][]string{}
	for name, w := range c.Worker {
		may[name] = w.Secrets
	}
	return workers.New(workers.Options{
		Secrets: may, Secret: kept.Read,
		Credentials: admin.NamedTokens(home), Version: versionText(), Grace: c.WorkerGrace, Labels: c.Labels,
		Elsewhere: !c.LocalSandboxes, Images: engine, Swarm: nodes,
		Pins: func() []string { return ownPins(c, home) },
		Stays: func(unit string) bool {
			u := c.ForUnit(unit)
			return u.ModelPath != "" || u.MaxStdin != c.ForUnit("").MaxStdin
		},
	})
}

// ownPins are those of the certificate that the server has made itself; none of another one, which has its roots.
func ownPins(c *config.Config, home string) (pins []string) {
	if c.TLS != config.TLSSelf {
		return nil
	}
	now, err := cli.ReadServing(home)
	if err != nil {
		return nil
	}
	for _, pin := range now.Pins {
		pins = append(pins, string(pin))
	}
	return pins
}

// teamsOf returns the teams that the settings in force or tokens name, but for the default one.
func teamsOf(settings func() *config.Config, tokens *access.Tokens) access.Teams {
	return func() []string {
		names := tokens.Teams()
		for name := range settings().Teams {
			if name != api.DefaultTeam && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
}

// pushesOf has receivers told of runs by ways of their own: what these may reach isn't a unit's.
func pushesOf(c *config.Config) pushes.Options {
	return pushes.Options{
		Door:    egress.New(egress.Options{Private: c.A2A.PushExceptions(), Connect: connectTime}),
		Hooks:   egress.New(egress.Options{Private: c.Webhooks.Exceptions(), Connect: connectTime}),
		NoHooks: !c.Webhooks.Enabled,
	}
}

// hookOf returns a hook, whose secret is read for each message: another one is in force at once.
func hookOf(c *config.Config, name string) (hook httpapi.Hook, ok bool) {
	h, ok := c.Hooks[name]
	return httpapi.Hook{Unit: h.Unit, Team: h.Team, Key: func() (webhooks.Key, error) {
		secret, err := secrets.Files{Dir: c.Secrets}.Read(h.Secret)
		if err != nil {
			return webhooks.Key{}, err
		}
		return webhooks.ParseSecret(string(secret))
	}}, ok
}

const connectTime = 5 * time.Second // to a receiver

func containerOptions(c *config.Config, kept secrets.Files, logger *slog.Logger) container.Options {
	opts := container.Options{
		Logger: logger, Limits: runtime.Limits{ResultBytes: c.PayloadLimit}, Starts: c.Starts,
		Pool:   pool.Options{Size: c.Pool, MemoryBytes: c.PoolMemory, Idle: c.PoolIdle},
		UIDs:   runtime.UIDs(c.SandboxUIDs),
		Secret: kept.Read,
		Units:  map[string]container.Extra{}, NeedSeccomp: !c.AllowUnconfined,
		Builds: container.BuildOptions{
			AtOnce: c.Builds, Wait: c.QueueWait, Timeout: c.BuildTimeout, MemoryBytes: c.BuildMemory, CPUs: c.BuildCPUs,
		},
	}
	for name := range c.Unit {
		u := c.ForUnit(name)
		opts.Units[name] = container.Extra{ModelPath: u.ModelPath, StdinBytes: u.MaxStdin}
	}
	return opts
}

// served are the API and what is served beside it.
type served struct {
	*httpapi.API
	agents *a2a.Server // nil: units aren't agents of A2A
}

// newAPI makes the API with all protocols. What looks after the tools of MCP ends with ctx or
// with stop, which waits for it.
func (a *app) newAPI(
	ctx context.Context, service *orchestrator.Service, settings *reloader, logger *slog.Logger,
) (made served, stop func(), err error) {
	c, token := settings.config(), ""
	if !c.NoAuth {
		if token, err = ensureToken(c.TokenFile); err != nil {
			return served{}, nil, err
		}
	}
	tools := mcp.NewViews(newMCPService(service, c), access.ViewOf,
		mcp.Options{
			Sessions: c.MCPSessions, Admit: service.Quotas.AdmitMCP, Version: versionText(), Logger: logger,
			Spans: true,
		})
	tokens := admin.NamedTokens(home(c))
	if err := shareJoin(c, tokens); err != nil {
		return served{}, nil, err
	}
	machines, _ := orchestrator.FeatureOf[*workers.Feature](service)
	mounts := append(agentMounts(service, c, logger), httpapi.Mount{Patterns: mcp.Patterns(), Handler: tools},
		httpapi.Mount{Patterns: workers.Patterns(), Handler: machines.Handler(), Scope: access.Work})
	opts := httpapi.Options{
		Token: token, Tokens: tokens, People: settings.people, NoAuth: c.NoAuth, Listen: c.Listen, Hosts: c.Hosts,
		Origins:     c.Origins,
		UploadBytes: c.UploadLimit, PayloadBytes: c.PayloadLimit, Memory: service.Memory(), FileRoots: c.FileRoots,
		ExecuteProblems: c.ExecuteErrors == config.AsProblem, NoPage: !hasPage, Reload: settings.reload,
		Logger: logger, Version: versionText(), Metrics: service.Metrics(), Collectors: tools.Collectors(),
		Workers: machines,
		Hooks:   func(name string) (httpapi.Hook, bool) { return hookOf(settings.config(), name) },
	}
	if c.A2A.Enabled {
		authorize := func(ctx context.Context, of a2a.Caller) (context.Context, error) {
			return made.Authorize(access.WithOrigin(ctx, access.Origin{Address: of.Address}), of.Token, of.Team)
		}
		made.agents = newAgents(service, c, a2aOptions(c, authorize, logger))
		mounts, opts.A2A = append(mounts, a2aMounts(made.agents, c)...), made.agents.Status
	}
	//nolint:gocritic // it isn't made yet
	signIn := func(ctx context.Context, token string) (signins.Session, error) { return made.SignIn(ctx, token) }
	page, err := pageMounts(service, c, settings.people, signIn, logger)
	if err != nil {
		return served{}, nil, err
	}
	opts.Mounts = slices.Concat(mounts, page)
	if made.API, err = httpapi.New(service, opts); err != nil {
		return served{}, nil, err
	}
	stopWatching, stopKeeping := watchTools(access.WithServer(ctx), tools), keepUses(ctx, tokens, logger)
	return made, func() { // their clients have gone with the API
		stopWatching()
		stopKeeping()
		_ = tools.Close()
	}, nil
}

// keepUses has it written down which tokens are used, until ctx ends or stop is called.
func keepUses(ctx context.Context, tokens *access.Tokens, logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	return cli.Beside(cancel, func() { tokens.KeepUses(ctx, logger) })
}

// watchTools has clients hear of changes of the units, until ctx ends or stop is called.
func watchTools(ctx context.Context, tools *mcp.Views) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	return cli.Beside(cancel, func() { tools.Watch(ctx) })
}

// agentMounts are the addresses of the agent HTTP contract, and of sessions with MCP servers.
func agentMounts(service *orchestrator.Service, c *config.Config, logger *slog.Logger) []httpapi.Mount {
	handler := agents.Handler(faceOf(service),
		agents.Options{Policy: agentPolicy(c), PayloadBytes: c.PayloadLimit, Logger: logger})
	sessions, _ := orchestrator.FeatureOf[*mcpsessions.Feature](service)
	return []httpapi.Mount{
		{Patterns: agents.Patterns(), Handler: handler, Refusal: agents.Refusal},
		{Patterns: []string{agents.ReadyPattern}, Handler: handler, Open: true},
		{Patterns: relay.Patterns(), Handler: sessions.Door(service.Quotas.AdmitMCP)},
	}
}

// face is a Service as every protocol asks it; it is that of the agent HTTP contract.
type face struct {
	*orchestrator.Service
	*records.Reader
	*records.Feed
}

func faceOf(service *orchestrator.Service) face { return face{service, service.Runs, service.Feed} }

// Units lists the units, also those with a problem.
func (f face) Units(ctx context.Context) ([]api.Unit, error) { return f.Service.Units.List(ctx) }

// Schema returns a unit's schema.json, or a NotFound fault.
func (f face) Schema(ctx context.Context, name string) ([]byte, error) {
	return f.Service.Units.Schema(ctx, name)
}

// FullName returns the name of the unit that the client of ctx means by one; the name itself, where there is none.
func (f face) FullName(ctx context.Context, name string) string {
	return f.Service.Units.FullName(ctx, name)
}

// reader returns a file that was opened, as an interface: nil where it wasn't.
func reader(file *os.File, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return file, nil
}

func agentPolicy(c *config.Config) agents.Policy {
	policy := agents.Policy{
		Rules:     agents.Rules{Require: c.Agents.Require, Modes: c.Agents.Modes, RiskTiers: c.Agents.RiskTiers},
		TaskTypes: c.Agents.TaskTypes,
		Units:     map[string]agents.Rules{},
		Refuse200: map[string]bool{},
	}
	for name, u := range c.Unit {
		policy.Units[name] = agents.Rules{Require: u.Require, Modes: u.Modes, RiskTiers: u.RiskTiers}
		policy.Refuse200[name] = u.Refuse200
	}
	return policy
}

// minToken is the shortest accepted token, in bytes.
const minToken = 32

// ensureToken reads the server's token, and makes one if there is none.
func ensureToken(path string) (string, error) {
	token, err := cli.ReadSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(path)
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the token in %q can't be read", path).
			WithHint("see the setting token_file")
	}
	if len(token) < minToken {
		return "", fault.New(fault.Input, "the token in %q has fewer than %d characters", path, minToken).
			WithHint("remove the file, and a good one is made")
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Input, "others can read the token in %q", path).WithHint("chmod 600 %s", path)
	}
	return token, nil
}

func makeToken(path string) (string, error) {
	token := rand.Text() + rand.Text() // 52 characters of base32
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = safefs.Replace(path, []byte(token+"\n"), safefs.ReplaceOptions{Mode: 0o600, Synced: true})
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "no token can be written to %q", path).
			WithHint("see the setting token_file")
	}
	return token, nil
}
