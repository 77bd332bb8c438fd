// Package initbin has the programs that run in sandboxes beside the capsule's: the init (package
// pid1), whose start message it writes and whose report it reads, and the far end of the tunnel
// from an engine that runs elsewhere (package line).
//
// Small programs of their own, cmd/aod-init and cmd/aod-line for each architecture, are built into
// bin/ before this package is, and embedded. They are not committed: an aod that was built
// without them (go install) has both roles itself, on engines of its own architecture.
//
// Main path: Installer.Install before each sandbox, StartMessage.Append for a parked init,
// ParseReport at the end. The package knows nothing of engines and containers.
//
// Its Go API may change with every release: see docs/stability.md.
package initbin
