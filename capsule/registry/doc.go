// Package registry finds the units that can be run by name: the capsules in the operator's
// directories, and the uploaded ones. It knows no engine and no runs.
//
// Every good state of a unit is a version: a copy below the registry's home, named after
// its content and never changed again. Runs are built from versions, so a later
// change of a directory changes nothing for an accepted run.
//
// The main path, in call order:
//
//	Registry.Get (registry.go)   the newest good version of a unit
//	survey (registry.go)         the directories that may hold units, at this moment
//	directory.look (directory.go)  reads one if its fingerprint has changed
//	Registry.adopt (adopt.go)    stores a new version and makes it current
//	home (home.go)               versions on disk, each complete or absent
//	Registry.Put (adopt.go), unpacker (unpack.go)  uploads, which are untrusted
//
// A broken directory is reported, and its last good version stays in use.
//
// Its Go API may change with every release: see docs/stability.md.
package registry
