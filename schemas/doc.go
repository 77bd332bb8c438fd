// Package schemas holds the JSON Schemas (draft-07) of every file that a person
// writes for AOD and of every record that AOD writes for others. They are the one
// place where keys are listed: the loader validates with them, and an editor that
// is pointed at them completes and explains.
//
// Every object of ours is closed (additionalProperties: false), so a key that is
// misspelt is found. What a schema can't say, such as that "30s" is a duration of
// at least a millisecond, is checked by the package that reads the file.
package schemas
