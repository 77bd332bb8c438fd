// Package units is the catalogue of a server's units: which there are, in which versions, what the operator says of
// them, and what clients are told.
//
//	Catalogue.Put      takes an upload, when its kind accepts it
//	Catalogue.Get      the unit of a new run, Catalogue.Version that of one that goes on
//	Rules.Govern       what the operator's settings make of a unit
//	Switches.Check     refuses a unit that is switched off
//
// It must not know how runs are led, nor HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package units
