// Package quantity reads and writes sizes and durations as people write them in settings,
// in agent.yaml and at the command line.
//
// Sizes go by powers of 1024, as everywhere around containers: "512m", "512MB" and "512MiB"
// mean the same.
package quantity
