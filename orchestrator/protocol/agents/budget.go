package agents

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
)

// timeBudgets are the members of budgets that limit a task's time, with their units. The
// specification gives them no names (section "Request schema"); these are usual ones.
var timeBudgets = map[string]time.Duration{
	"timeout_ms":      time.Millisecond,
	"timeout_s":       time.Second,
	"timeout_seconds": time.Second,
	"max_seconds":     time.Second,
}

const unappliedBudget = "budgets has limits that this server does not apply: it knows timeout_ms, timeout_s, " +
	"timeout_seconds and max_seconds"

// readBudgets returns the shortest of the given times, 0 for none, with a warning for each
// unknown member. The error is an Input fault.
func readBudgets(budgets agenthttp.Object) (within time.Duration, warnings []string, err error) {
	if budgets.IsZero() {
		return 0, nil, nil
	}
	var limits map[string]json.RawMessage
	if err := json.Unmarshal(budgets, &limits); err != nil {
		return 0, nil, fault.Wrap(fault.Internal, err, "the budgets could not be read again")
	}
	var found []fault.Finding
	for name, raw := range limits {
		each, isTime := timeBudgets[name]
		switch {
		case string(raw) == "null":
			continue
		case !isTime:
			warnings = []string{unappliedBudget}
			continue
		}
		limit, ok := timesOf(each, raw)
		if !ok {
			found = append(found, fault.Finding{Pointer: "/budgets/" + name, Message: "it is not a number above 0"})
		}
		if within == 0 || limit < within {
			within = limit
		}
	}
	if len(found) > 0 {
		return 0, nil, fault.New(fault.Input, "the budgets are not valid").WithFindings(found)
	}
	return within, warnings, nil
}

// timesOf reads a number of units as a duration. It has to be a millisecond or longer.
func timesOf(each time.Duration, raw json.RawMessage) (time.Duration, bool) {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !math.IsInf(n, 0) || !(n > 0) {
		return 0, false
	}
	if n >= float64(math.MaxInt64/each) {
		return math.MaxInt64, true
	}
	return max(time.Duration(n*float64(each)), time.Millisecond), true
}
