// Package catalog says which providers of models there are, and which models under which
// names: the tables `providers` and `models` of a server's file, and of a file of its own.
//
// Read reads a file with both tables. Providers and Models read one table each of a file that
// was parsed already, and Check then holds the two against each other. Findings have lines.
//
// Prices are integers: billionths of the currency for a million tokens. The package has no
// prices of its own, and no list of what models there are.
//
// It must not know how a provider is asked.
//
// Its Go API may change with every release: see docs/stability.md.
package catalog
