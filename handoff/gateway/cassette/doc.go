// Package cassette keeps answers of models beside the requests that they answer, and finds
// them again.
//
// KeyOf makes the key of a request: dialect, model and canonical body, in which names are
// sorted and numbers stay as they were written. Recorder.Keep writes an answer as a line of
// JSON; Read reads all lines; Player.Next gives the n-th equal request the n-th answer. A
// request that isn't there is a *Miss, which names the nearest one that is and where the two
// differ.
//
// It knows bodies and answers, and makes no connection.
//
// Its Go API may change with every release: see docs/stability.md.
package cassette
