// Package config holds the settings of the server: what there is to set, where each
// value comes from, and every problem with them at once.
//
// A setting is one row of the table in settings.go. Flags, environment variables,
// the file's keys, the schema and the documentation are made from that row or tested
// against it. A flag wins over the environment, that over the file, that over the
// default.
//
// The main path, in call order:
//
//	Flags (flags.go)         a flag for every row
//	Load (load.go)           default -> file -> environment -> flags
//	file.read (file.go)      the YAML file, with its lines
//	loader.set               one value, and the place that it comes from
//	loader.settle, check (check.go)  what follows from other settings, or contradicts them
//	Config.Values (config.go)        what is in force, and where from
//
// It knows what a value must look like, not what it does: it opens no socket, and no
// file but the one that it reads.
package config
