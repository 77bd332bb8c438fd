package mcp

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func runCommand(env *cli.Env) *cobra.Command {
	var sources runflags.Sources
	cmd := &cobra.Command{
		Use:   "run DIR|NAME",
		Short: "Connect an MCP client on stdin and stdout with a sealed server",
		Long: `Start the server of a unit with kind: mcp in a sandbox, and pass messages of the Model Context
Protocol on between it and the client at stdin and stdout, as they are. In a client's
configuration it takes the place of docker run -i. The server ends with its client. What it
writes to stderr goes to stderr.`,
		Example: "  aod mcp run ./memory\n  claude mcp add memory -- aod mcp run ~/capsules/memory",
		Args:    cli.Exactly(1, "one directory or name of a unit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return mcpRun(cmd.Context(), env, args[0], sources)
		},
	}
	sources.RegisterFiles(cmd.Flags())
	return cmd
}

func mcpRun(ctx context.Context, env *cli.Env, name string, sources runflags.Sources) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	server, rules, err := mcpUnit(env, name, sources)
	if err != nil {
		return err
	}
	rules.Idle = 0 // the client is there for as long as stdin is open
	session := relay.New(rules, func(message []byte) error {
		_, err := env.Out.Write(append(message[:len(message):len(message)], '\n'))
		return err
	})
	go watchReader(env, session)
	go func() {
		if err := relay.FromLines(ctx, env.In, session); err != nil && session.Err() == nil {
			session.End(err)
		}
	}()
	return server.talk(ctx, env, session)
}

// mcpServer is a unit on this machine that is an MCP server.
type mcpServer struct {
	*capsule.Capsule
	sources runflags.Sources
}

func mcpUnit(env *cli.Env, name string, sources runflags.Sources) (mcpServer, relay.Options, error) {
	if env.Server != "" {
		return mcpServer{}, relay.Options{}, fault.New(fault.Input,
			"this command starts servers on this machine, and --server names another one").
			WithHint("connect a client with %s/mcp/UNIT, or leave out --server and unset AOD_SERVER", env.Server)
	}
	c, err := lookup.Load(env, name)
	if err != nil {
		return mcpServer{}, relay.Options{}, err
	}
	rules, err := container.SessionRules(unit.Of(c))
	return mcpServer{c, sources}, rules, err
}

// talk runs the server until the session is over.
func (s mcpServer) talk(ctx context.Context, env *cli.Env, session *relay.Session) error {
	u := unit.Of(s.Capsule)
	input, err := contract.Decode([]byte("{}"), contract.DefaultMaxBytes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go leaveEarly(ctx, session, cancel)
	view := progress.New(env.Err, s.Name, env.Quiet)
	defer view.Close()
	req := orchestrator.Request{
		Request: run.Request{Unit: u, Input: input, Extra: session}, Find: lookup.Callees(env, u, s.Capsule),
		Observe: view.Event,
	}
	err = s.sources.WithUnit(ctx, env, req, func(ctx context.Context, l *cli.Local) error {
		ended, err := l.Runs.Run(ctx, req)
		if err != nil {
			return err
		}
		return talked(ended.Record)
	})
	if err == nil {
		return nil
	}
	session.End(fault.Public(err))
	<-session.Done() // what it was asked is answered
	if errors.Is(session.Err(), relay.ErrClientLeft) {
		return nil
	}
	return err
}

// leaveEarly cancels the run of a client that has left before there was a server.
func leaveEarly(ctx context.Context, session *relay.Session, cancel context.CancelCauseFunc) {
	select {
	case <-session.Done():
		if !session.Begun() {
			cancel(relay.ErrClientLeft)
		}
	case <-ctx.Done():
	}
}

// talked returns how a session failed.
func talked(record api.Record) error {
	if record.Outcome == api.Success {
		return nil
	}
	failure := fault.New(fault.Capsule, "the session with %q failed", record.Unit)
	if e := record.Error; e != nil {
		failure = fault.New(fault.Capsule, "%s: %s", record.Unit, e.Message).WithHint("%s", e.Hint)
	}
	return failure
}

// watchReader ends the session when nobody reads stdout any more: a client that was killed
// says nothing.
func watchReader(env *cli.Env, session *relay.Session) {
	if waitUnread(env.Out.FD, session.Done()) {
		session.End(relay.ErrClientLeft)
	}
}
