// Package initbin carries what runs in sandboxes beside their programs inside the aod
// binary: the init (cmd/aod-init), whose start message it writes and whose report it reads,
// and the far end of the tunnel from an engine that runs elsewhere (cmd/aod-line).
//
// The programs, one for each architecture, are built into bin/ before this package is
// and are not committed. Without them the package builds all the same, and Binary
// says what to do.
//
// Main path: Install once for each data directory, then ParseReport for each sandbox; in
// between StartMessage.Append where its init was parked.
package initbin
