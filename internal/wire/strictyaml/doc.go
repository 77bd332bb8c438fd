// Package strictyaml reads YAML files that people write: one document, no merge keys, no key twice, only what JSON can
// hold.
//
// ParseNode checks the syntax and returns the nodes, each with its line. Parse makes JSON values of them, bounded in
// depth and number, and Document.LineAt finds the line of a value again by its JSON pointer. A Reader goes through
// tables of named things, and reports what isn't what their owner knows.
//
// An Edit changes one value of a text after the other, and keeps every byte around it.
//
// Everything wrong is a fault.Finding with the file and the line. It doesn't know what is in a file.
//
// It must not know what is in a document.
package strictyaml
