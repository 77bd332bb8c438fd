// Package contract reads a capsule's schema.json and holds payloads against it.
//
// The main path, in call order: Parse compiles the contract once; Decode reads a
// payload strictly; Schema.Validate reports every violation; Schema.CheckFiles
// looks for the files that the payload names; Schema.FileRefs lists them. Schema.Form
// describes an input as a form, which package form fills and reads.
//
// Contracts are JSON Schema draft-04 to 2020-12 with the short type names int,
// float, bool, dict and list, and the string format "file_path". The engine knows
// draft-07: what later drafts have is translated, or refused where it can't be.
// Both sides are hostile: what a contract costs is bounded when it is compiled,
// what a payload costs against it is bounded before it is validated, and nothing
// is ever fetched or opened on a contract's behalf.
//
// A string that stands where any applicable part of the contract says
// "format": "file_path" is a file reference, even when another part allows more.
//
// This is the only package that imports gojsonschema. It knows nothing of
// directories of capsules, of engines or of runs.
//
// Its Go API may change with every release: see docs/stability.md.
package contract
