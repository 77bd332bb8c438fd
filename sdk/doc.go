// Package sdk carries the Python library of capsules, so that a lone aod binary can
// build the base image. The library's own tests are in python/tests.
//
// Its Go API may change with every release: see docs/stability.md.
package sdk
