// Package script is a provider of models that answers from a file: for demonstrations, for
// guides and for tests, without a key, a network or a model.
//
// Read reads the file: a list of answers, or a map with `answers` and `repeat`. Script.Answer
// gives each run the answers from the first one on, in the dialect that is asked and as a
// stream where one is asked for.
//
// It knows the shapes of answers in each dialect, and nothing of who asks.
//
// Its Go API may change with every release: see docs/stability.md.
package script
