package container

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// answersTime bounds the time in which a server tells its tools.
const answersTime = 30 * time.Second

// toolLists ask MCP servers for their tools.
type toolLists struct {
	machine *machine
	starter *starter
	trials  *trials
}

// ask returns the tools that an MCP server has, whether they may be called or not. It is
// asked once for each image. observe gets the steps of the image's build, and may be nil. The
// error is a Capsule fault where the server doesn't tell.
func (l toolLists) ask(ctx context.Context, u *unit.Unit, observe func(run.Event)) (tools []relay.Tool, err error) {
	if err := l.machine.canTalk(); err != nil {
		return nil, err
	}
	err = l.trials.beside(ctx, u, observe, func(r *run.Run, spec runtime.Spec, dir string) error {
		known := filepath.Join(l.machine.home.Cards, strings.TrimPrefix(spec.Image.ID, "sha256:")+".tools.json")
		if raw, err := os.ReadFile(known); err == nil && json.Unmarshal(raw, &tools) == nil {
			return nil
		}
		if tools, err = l.askForTools(ctx, r, spec, filepath.Join(dir, "tools")); err != nil {
			return err
		}
		raw, err := json.Marshal(tools)
		return errors.Join(err, remember(known, raw))
	})
	return tools, err
}

// askForTools starts the server in a sandbox beside those of runs.
func (l toolLists) askForTools(
	ctx context.Context, r *run.Run, spec runtime.Spec, dir string,
) (tools []relay.Tool, err error) {
	layout, err := l.starter.newLayout(dir, spec.Image, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, safefs.RemoveTree(dir)) }()
	client, session := relay.NewClient(relay.Options{})
	t := newStdioBridge(session)
	talkInstead(&spec, r.Unit, t)
	spec.Purpose, spec.Network = "tools", "none"
	ctx, cancel := context.WithTimeoutCause(ctx, answersTime,
		fault.New(fault.Capsule, "the server of %q didn't tell its tools in %v", r.Record.Unit, answersTime))
	defer cancel()
	log := runtime.NewLog(spec.Limits.LogBytes, r.Log)
	defer t.begin(ctx, log)()
	asked := make(chan error, 1)
	go func() {
		var failed error
		tools, failed = toolsOf(ctx, client)
		session.End(relay.ErrClientLeft)
		asked <- failed
	}()
	stopped, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	go func() {
		<-session.Done()
		stop(errSessionOver)
	}()
	_, err = l.starter.startToEnd(stopped, spec, layout, log, answersTime)
	session.End(relay.ErrServerEnded) // unless it is over
	if errors.Is(err, errSessionOver) && !errors.Is(err, runtime.ErrLeftBehind) {
		err = nil
	}
	return tools, errors.Join(err, <-asked)
}

func toolsOf(ctx context.Context, client *relay.Client) ([]relay.Tool, error) {
	if err := client.Open(ctx); err != nil {
		return nil, untold(err)
	}
	tools, err := client.Tools(ctx)
	return tools, untold(err)
}

func untold(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Capsule, "the server doesn't tell its tools: %s", fault.Public(err).Msg).
		WithHint("its program has to speak MCP on stdin and stdout, with nothing else on stdout")
}

// card is what an MCP server has for a model card.
func (l toolLists) card(ctx context.Context, u *unit.Unit) (json.RawMessage, error) {
	tools, err := l.ask(ctx, u, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"tools": granted(u, tools)})
}

// granted are the tools that may be called.
func granted(u *unit.Unit, tools []relay.Tool) []relay.Tool {
	kept := []relay.Tool{}
	for _, t := range tools {
		if c, ok := u.Definition.(*capsule.Capsule); ok && c.MCP.Offers(t.Name) {
			kept = append(kept, t)
		}
	}
	return kept
}
