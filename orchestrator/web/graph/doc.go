// Package graph draws directed graphs as SVG: in layers, with loops, several lines between two
// nodes, and graphs inside of nodes.
//
// It doesn't know flows: who calls it says what stands in a node, how the node stands and where
// it leads. Every text may be foreign. The SVG has classes and attributes alone, no style and no
// script, and its colours are those of the page around it, as are the symbols of its marks.
//
// Main path: Draw → newLayout (layout.go) → rank and bend (rank.go) → untangle (order.go) →
// place (place.go) → svg (svg.go), which asks route.go for the ways of the lines.
//
// Its Go API may change with every release: see docs/stability.md.
package graph
