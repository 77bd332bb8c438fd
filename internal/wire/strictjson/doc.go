// Package strictjson reads JSON that strangers wrote: payloads, contracts, the output of
// a program, the answer of an agent.
//
// encoding/json takes names that stand twice, half surrogate pairs, numbers beyond a
// double and any depth in silence, so that two readers of one text may see two different
// documents. Decode and Check refuse all that, with a line, a column and a pointer.
// Members, Set and Encode then take a document apart and write one, names and numbers as
// they were given.
//
// The package knows JSON (RFC 8259), pointers (RFC 6901) and nothing of what is in a
// document.
package strictjson
