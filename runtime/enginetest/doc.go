// Package enginetest tests engines and stands in for them.
//
// Run is the conformance suite: what every runtime.Engine must do, run against Fake here and against Docker in
// runtime/docker, so that the fake can't drift from what it imitates. Fake is an engine in memory for the tests of
// everything above: its containers run Go functions, and it fails when told to. Process has them run the scripts that a
// container would, as processes of this machine.
//
// Neither must it know capsules.
//
// It must not import an engine's client.
//
// Its Go API may change with every release: see docs/stability.md.
package enginetest
