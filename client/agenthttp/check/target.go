package check

import (
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Target is an agent to check, and a task that it knows.
type Target struct {
	URL      string
	TaskType string // "" skips the checks that need a task
}

// ParseTarget reads URL or URL=TASK.
func ParseTarget(text string) (Target, error) {
	target := Target{URL: strings.TrimSpace(text)}
	if at := strings.LastIndexByte(target.URL, '='); at >= 0 && !strings.Contains(target.URL[at:], "/") {
		target.URL, target.TaskType = target.URL[:at], target.URL[at+1:]
		if target.TaskType == "" {
			return Target{}, fault.New(fault.Input, "the agent to check has no task type after the =").
				WithHint("write URL=TASK, or URL alone")
		}
	}
	if err := httpwire.CheckAgentAddress(target.URL, true); err != nil {
		return Target{}, err
	}
	target.URL = strings.TrimRight(target.URL, "/")
	return target, nil
}

// ParseTargets reads a list with commas, as AGENT_CONTRACT_TARGETS holds it (section
// "Running the stream contract check locally").
func ParseTargets(list string) ([]Target, error) {
	var targets []Target
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		target, err := ParseTarget(part)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Plain reports whether requests to the agent can be read on the way.
func (t Target) Plain() bool {
	return httpwire.CheckAgentAddress(t.URL, true) == nil && httpwire.CheckAgentAddress(t.URL, false) != nil
}
