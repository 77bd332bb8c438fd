// Package initbin carries the sandbox's init program (cmd/aod-init) inside the aod
// binary and reads the report that it leaves.
//
// The programs, one for each architecture, are built into bin/ before this package is
// and are not committed. Without them the package builds all the same, and Binary
// says what to do.
//
// Main path: Install once for each data directory, then ParseReport for each sandbox.
package initbin
