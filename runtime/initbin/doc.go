// Package initbin embeds into the aod binary the programs that run in sandboxes beside the
// capsule's: the init (cmd/aod-init), whose start message it writes and whose report it reads,
// and the far end of the tunnel from an engine that runs elsewhere (cmd/aod-line).
//
// The programs, one of each for each architecture, are built into bin/ before this package is
// built. They are not committed. Without them the package builds, and Binary says what to do.
//
// Main path: Installer.Install before each sandbox, StartMessage.Append for a parked init,
// ParseReport at the end. The package knows nothing of engines and containers.
package initbin
