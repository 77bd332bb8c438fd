// Package servicetest has the one harness of tests of a whole Service: a real orchestrator.Service with
// the real kinds, over the fake engine and a home of its own. Services come and go over one home and one
// engine; a program is a Go function, chosen by its unit's name.
//
//	New            makes the home, the units and the engine, and starts a Service
//	Submit, Await  have a run accepted, and wait for its very end
//	Stop, Start    end the Service at once; the next one goes on with what runs
//	OnCall         has the engine fail, wait, or tell when it is asked
//
// A test that uses it is external, since orchestrator can't import it. At the end of each test nothing
// may be left: no container, and no file of a run that is over.
//
// Its Go API may change with every release: see docs/stability.md.
package servicetest
