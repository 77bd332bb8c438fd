package capsule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// AgentCall is what the process of a wrapped agent gets in a run.
type AgentCall struct {
	Argv       []string
	Env        []string // "NAME=value"
	Dir        string   // absolute: where it starts
	Message    string
	Stdin      bool   // the message is its stdin; else that is empty
	InputFile  string // relative to /workspace: gets the message; "": none does
	OutputFile string // relative to /workspace: where it leaves its output; "": on stdout
}

// AgentSession is the session that the process of a wrapped agent takes part in.
type AgentSession struct {
	ID     string // with which it resumes; "": there is no session
	Resume bool   // it had turns before
}

// AgentOutputBytes is the most that is read of the output of a wrapped agent.
const AgentOutputBytes = agent.MaxOutput

// AgentCall returns what the agent's process gets for an input, in the run with that id, in its
// session, and started as its caller says. The message is the input's field of that name, and the
// whole input where it has none. The errors are those of agent.Command.
func (c *Capsule) AgentCall(
	input contract.Payload, run string, in AgentSession, start AgentStart,
) (call AgentCall, err error) {
	config := c.Wrapped
	v, err := c.agentValues(input, run)
	if err != nil {
		return call, err
	}
	v.Dir = c.AgentDir(start)
	v.Session, v.Resume = in.ID, in.Resume
	call = AgentCall{
		Env: c.AgentEnv(v, start), Dir: v.Dir, Message: v.Message, Stdin: config.Input == agent.Stdin,
		InputFile: agent.InputFile(config, v), OutputFile: c.AgentOutputFile(run),
	}
	call.Argv, err = agent.Command(config, v)
	return call, err
}

// AgentDir returns where the agent's process starts, an absolute path.
func (c *Capsule) AgentDir(start AgentStart) string {
	return path.Join(agent.Dir(c.Wrapped), start.Dir)
}

// AgentEnv returns the variables of the agent's process, "NAME=value". Of a name that stands twice
// the last counts, which is its caller's.
func (c *Capsule) AgentEnv(v agent.Values, start AgentStart) []string {
	return append(agent.Environment(c.Wrapped, v), start.variables()...)
}

// AgentOutputFile returns the name below /workspace of the file in which a run leaves its
// output; "": it leaves that on stdout.
func (c *Capsule) AgentOutputFile(run string) string {
	return agent.OutputFile(c.Wrapped, agent.Values{Run: run})
}

func (c *Capsule) agentValues(input contract.Payload, run string) (agent.Values, error) {
	config := c.Wrapped
	v := agent.Values{Dir: agent.Dir(config), Run: run, Message: string(input.JSON())}
	decoder := json.NewDecoder(strings.NewReader(v.Message))
	decoder.UseNumber()
	if err := decoder.Decode(&v.Input); err != nil {
		return v, fmt.Errorf("decode input: %w", err)
	}
	if message, ok := v.Input["message"].(string); ok {
		v.Message = message
	}
	if !c.OwnContract() {
		v.Input, _ = v.Input["parameters"].(map[string]any)
	}
	for _, ref := range c.Contract.Input.FileRefs(input) {
		v.Files = append(v.Files, path.Join(agent.InputDir, ref.Name))
	}
	if config.Input == agent.File {
		v.File = path.Join(agent.WorkDir, agent.InputFile(config, v))
	}
	if config.Output == agent.File {
		v.Output = path.Join(agent.WorkDir, agent.OutputFile(config, v))
	}
	return v, nil
}

// AgentOutput is what the output of a wrapped agent says.
type AgentOutput struct {
	Document map[string]any  // the run's output: what the unit's own contract says, or {"text": …}
	Session  string          // the id with which it resumes; "": it tells none
	Usage    json.RawMessage // as it tells it; nil: it doesn't
	CostUSD  json.Number     // "": it doesn't tell
	Failed   bool            // it says that it failed
	Reason   string          // what it says of that; may be ""
	Skipped  int             // lines that aren't documents, or too long
	Wrong    *fault.Finding  // why it isn't what agent.yaml says; nil: it is
}

// ReadAgentOutput reads the output of the agent's process, at most limit bytes of a text or a
// document. The error is r's.
func (c *Capsule) ReadAgentOutput(r io.Reader, limit int64) (AgentOutput, error) {
	read, err := agent.ReadOutput(c.Wrapped, r, limit)
	output := AgentOutput{
		Session: read.Session, Usage: read.Usage, CostUSD: read.CostUSD, Failed: read.Failed, Reason: read.Reason,
		Skipped:  read.Skipped,
		Document: map[string]any{"text": read.Text},
	}
	if document, ok := c.agentDocument(read.Value); ok {
		output.Document = document
	}
	if wrong := (*agent.OutputError)(nil); errors.As(err, &wrong) {
		output.Wrong, err = &fault.Finding{Message: wrong.Message, Hint: wrong.Hint}, nil
	}
	return output, err
}

// agentDocument returns the object that an agent answered, where its own contract wants one. Some
// programs that are given a schema tell what keeps it as a text: that is the object, unless the
// contract has a place for a text.
func (c *Capsule) agentDocument(value any) (document map[string]any, ok bool) {
	if !c.OwnContract() {
		return nil, false
	}
	text, is := value.(string)
	isText := func(f contract.Field) bool { return f.Name == "text" }
	if is && !slices.ContainsFunc(c.Contract.Output.Fields(), isText) {
		value = agent.DocumentIn(text)
	}
	document, ok = value.(map[string]any)
	return document, ok
}

// Talks reports whether it is an agent with sessions, or whose runs are one turn of a dialog each.
func (c *Capsule) Talks() bool {
	return c.Wrapped != nil && (c.Wrapped.Mode == agent.Interactive || c.Wrapped.Input == agent.JSONRPC)
}

// AgentStart is what a caller says of the start of a wrapped agent's program. The zero value
// leaves it as agent.yaml has it.
type AgentStart struct {
	Env map[string]string `json:"env,omitempty"` // of names in agent.caller_env; never a secret
	Dir string            `json:"dir,omitempty"` // below agent.dir; "": that
}

// Bounds of an AgentStart.
const (
	maxStartDir = 1 << 10  // bytes
	maxStartEnv = 32 << 10 // bytes of all names and values
)

// IsZero reports whether it says nothing.
func (s AgentStart) IsZero() bool { return len(s.Env) == 0 && s.Dir == "" }

// variables are those of the caller, "NAME=value", sorted.
func (s AgentStart) variables() []string {
	all := make([]string, 0, len(s.Env))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		all = append(all, name+"="+s.Env[name])
	}
	return all
}

// CheckStart holds what a caller says against agent.yaml. The error is an Input fault, which
// repeats no value.
func (c *Capsule) CheckStart(s AgentStart) error {
	switch {
	case s.IsZero():
		return nil
	case c.Wrapped == nil:
		return fault.New(fault.Input, "%q takes no env and no dir: only units of the kind agent do", c.Name).
			WithHint("say it in the input")
	}
	if err := c.checkStartEnv(s.Env); err != nil {
		return err
	}
	return checkStartDir(s.Dir)
}

func (c *Capsule) checkStartEnv(env map[string]string) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		size += len(name) + len(value)
		switch {
		case !slices.Contains(c.Wrapped.CallerEnv, name):
			return fault.New(fault.Input, "env: %q gives callers no say in %s", c.Name, fault.Quote(name)).
				WithHint("agent.caller_env in its agent.yaml names those in which they have one: %q",
					c.Wrapped.CallerEnv)
		case looksSecret(name, value):
			return fault.New(fault.Input,
				"env: %s looks like a secret: everybody who may look at the engine could read it", fault.Quote(name)).
				WithHint("keys of models stay at the gateway: see docs/models.md")
		case strings.ContainsRune(value, 0):
			return fault.New(fault.Input, "env: the value of %s has a NUL byte in it", fault.Quote(name)).
				WithHint("leave it out")
		}
	}
	if size > maxStartEnv {
		return fault.New(fault.Input, "env: the variables have %d bytes, at most %d can be given", size, maxStartEnv).
			WithHint("give a file")
	}
	return nil
}

func checkStartDir(dir string) error {
	if dir == "" {
		return nil
	}
	clean := !path.IsAbs(dir) && path.Clean(dir) == dir && dir != "." && dir != ".." && !strings.HasPrefix(dir, "../")
	if !clean || len(dir) > maxStartDir || !utf8.ValidString(dir) || strings.ContainsRune(dir, 0) {
		return fault.New(fault.Input, "dir: %s isn't a directory below the agent's", fault.Quote(dir)).
			WithHint("write a relative path without . and .., of up to %d bytes", maxStartDir)
	}
	return nil
}
