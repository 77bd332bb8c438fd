package agents

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
)

// Policy holds the operator's rules for requests of the agent HTTP contract. The zero Policy
// permits all requests.
type Policy struct {
	Rules
	TaskTypes map[string]string // units by the task types that stand for them, before any name does
	Units     map[string]Rules  // by name: they take from what the others allow, and never add
	// Refuse200 are the units that refuse inputs, or fail, with 200 and the status "error" instead of
	// 422 or 502, and with the contract's own codes. The contract allows both.
	Refuse200 map[string]bool
}

// Rules restrict requests. Empty Rules permit all.
type Rules struct {
	Require   []string // fields of the contract that it must have, such as user_id
	Modes     []string // that it may have; none: all
	RiskTiers []string // that it may have, and must have one of; none: all, or none
}

// The fields of a request that are stored with its run. DefaultMode is the mode of a request
// that names none (section "Request schema").
const (
	fieldMode     = "mode"
	fieldRiskTier = "risk_tier"
)

// metadataOf returns the fields of a request that are stored with its run, by name. The error
// is an Input fault.
func metadataOf(r agenthttp.Request) (map[string]string, error) {
	metadata := map[string]string{
		"request_id": r.RequestID, "task_type": r.TaskType, fieldMode: r.Mode, fieldRiskTier: r.RiskTier,
		"domain_id": r.DomainID, "workflow_id": r.WorkflowID, "stage_id": r.StageID, "user_id": r.UserID,
	}
	maps.DeleteFunc(metadata, func(_, text string) bool { return text == "" })
	var found []fault.Finding
	for _, field := range slices.Sorted(maps.Keys(metadata)) {
		if !api.IsMetadataValue(metadata[field]) {
			found = append(found, fault.Finding{Pointer: "/" + field, Message: api.MetadataValueRule})
		}
	}
	if len(found) > 0 {
		return nil, fault.New(fault.Input, "the request has texts that can't be kept with a run").WithFindings(found)
	}
	return metadata, nil
}

// permit checks a request for a unit against the policy. Its error names fields and rules,
// never values. It is an Input fault if a field is missing, and a Forbidden fault if a value
// isn't allowed.
func (p Policy) permit(unit string, metadata map[string]string) error {
	own := p.Units[unit]
	var missing, denied []fault.Finding
	for _, rules := range []Rules{p.Rules, own} {
		missing = append(missing, rules.missing(metadata)...)
		denied = append(denied, rules.denied(metadata)...)
	}
	switch {
	case len(missing) > 0:
		return fault.New(fault.Input, "the request lacks what this server wants of it").WithFindings(distinct(missing))
	case len(denied) > 0:
		return fault.New(fault.Forbidden, "this server does not take such a request").WithFindings(distinct(denied))
	}
	return nil
}

// missing finds the required fields that a request lacks. A rule about risk tiers requires the
// field: without that a request could evade the rule.
func (r Rules) missing(metadata map[string]string) (found []fault.Finding) {
	for _, field := range r.Require {
		if metadata[field] == "" {
			found = append(found, fault.Finding{Pointer: "/" + field, Message: "it is required here"})
		}
	}
	if len(r.RiskTiers) > 0 && metadata[fieldRiskTier] == "" {
		found = append(found, fault.Finding{Pointer: "/" + fieldRiskTier, Message: "it is required here"})
	}
	return found
}

func (r Rules) denied(metadata map[string]string) (found []fault.Finding) {
	mode := metadata[fieldMode]
	if mode == "" {
		mode = agenthttp.DefaultMode
	}
	found = append(found, among(fieldMode, mode, r.Modes)...)
	return append(found, among(fieldRiskTier, metadata[fieldRiskTier], r.RiskTiers)...)
}

func among(field, text string, allowed []string) []fault.Finding {
	if len(allowed) == 0 || slices.Contains(allowed, text) {
		return nil
	}
	return []fault.Finding{{Pointer: "/" + field, Message: fmt.Sprintf("it is not one of %q", allowed)}}
}

// distinct sorts findings and removes duplicates: server and unit may have the same rule.
func distinct(found []fault.Finding) []fault.Finding {
	slices.SortStableFunc(found, func(a, b fault.Finding) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}
