// Package check holds an Agentic Unit against the specification's checklist (section 10).
//
// Unit has a Starter start the unit in every Scenario that can be had of it, and judges
// what it saw. Judge takes what was observed and returns a verdict for each of Checks. A
// check that lacks its observation isn't applicable: it neither passed nor failed.
//
// All that a unit prints is hostile: no verdict shows a value from it.
//
// It knows nothing of engines, sandboxes or runs: the Starter does.
package check
