// Package unit is what can be run by name, whatever its kind: a Unit with its contract, its
// policy and the definition that its kind has read. Unit.Govern makes the policy that a unit
// asks for the one that holds: with what an operator gives, within what he allows.
//
// Where units come from, and which of their versions is current, is capsule/registry.
//
// Its Go API may change with every release: see docs/stability.md.
package unit
