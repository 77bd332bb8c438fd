// Package unit is the registry of what can be run by name: the capsules in directories
// that an operator named, and those that were uploaded. It knows no engine and no runs.
//
// Every good state of a unit is a version: a copy below the registry's home, named after
// its content and never changed again. Runs are built from versions, so what happens to
// a directory later changes nothing for a run that was accepted before.
//
// The main path, in call order:
//
//	Registry.Get (registry.go)   the newest good version of a unit
//	survey (survey.go)           the directories that may hold units, at this moment
//	directory.look (directory.go)  what one holds; read only when its fingerprint changed
//	Registry.adopt (adopt.go)    stores a new version and makes it current
//	home (home.go)               versions on disk, each there whole or not at all
//	Registry.Put (put.go), unpacker (unpack.go)  uploads, which come from anybody
//
// A broken directory is reported, and the last good version serves on. Another kind of
// unit needs a reading of its own beside the capsule's in directory.go and adopt.go.
package unit
