// Package check checks an Agentic Unit against the specification's checklist (section 10).
//
// Unit has a Starter start the unit in every possible Scenario, and judges the
// observations. Judge takes an observation and returns a verdict for each of Checks. A
// check without its observation isn't applicable: it neither passed nor failed.
//
// A unit's output is hostile: no verdict shows a value from it.
//
// It knows nothing of engines, sandboxes or runs: the Starter does.
//
// Its Go API may change with every release: see docs/stability.md.
package check
