// Package safefs does the small things with files that several rooms need and that are
// easy to get wrong: opening what untrusted code may have put there (open.go), reading no
// more of it than may be and saying what it is instead (read.go), copying it or replacing one as a
// whole (replace.go), having it on the disk (sync.go), locking one (lock.go), telling by
// patterns which are left out (patterns.go), and walking and removing a tree that untrusted
// code made (tree.go).
//
// Errors are those of package os, or the few types that are declared here. It must not
// know what the files mean, nor how an error is shown: messages for users are made by the
// callers. It imports nothing of ours.
package safefs
