// Package workspace copies a project in for a run, and hands its changes back.
//
//	Scan      what of a directory belongs to the project (scan.go, git.go, gitdir.go)
//	WriteTar  sends it; Unpack stores it, read as hostile, with a Manifest (pack.go, unpack.go)
//	Clone     the copy that a run gets (clone.go)
//	Compare   what a run has made of its copy, read as hostile: the changes, with new contents
//	          and a patch in git's format (compare.go, patch.go, risks.go)
//	Apply     writes changes into a directory: all of them, or none (apply.go, journal.go)
//
// A project is files and symbolic links that stay inside; directories are there where files
// are in them, as in git. Names are payloads: errors show them to whoever asked, logs never do.
// The package must not know runs, units, HTTP or a terminal.
package workspace
