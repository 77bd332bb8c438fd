package capsule

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
)

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
		return fault.New(fault.Input, "dir: %s is no directory below that in which the agent starts", fault.Quote(dir)).
			WithHint("write a relative path without . and .., of up to %d bytes", maxStartDir)
	}
	return nil
}
