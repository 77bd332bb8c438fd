// Package config holds the settings of the server: the table of settings, the source of
// each value, and all problems with them together.
//
// A setting is one row of the table in settings.go. Flags, environment variables,
// the file's keys, the schema and the documentation are made from that row or tested
// against it. A flag overrides the environment, which overrides the file, which
// overrides the default.
//
// The main path, in call order:
//
//	Flags (flags.go)         a flag for every row
//	Load (load.go)           default -> file -> environment -> flags
//	file.read (file.go)      the YAML file, with its lines
//	loader.set               one value, and its source
//	loader.settle, check (check.go)  derived values, and contradictions
//	Config.Values (config.go)        the values in force, and their sources
//
// It knows the form of a value, not its effect: it opens no socket, and no file but the
// configuration file.
//
// Its Go API may change with every release: see docs/stability.md.
package config
