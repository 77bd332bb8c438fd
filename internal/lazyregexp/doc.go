// Package lazyregexp has regular expressions that are compiled when they are first used.
//
// A program compiles each time it starts what its packages declare, and one call of aod uses few of them: the rest is
// time and memory in which nothing that was asked for happens.
package lazyregexp
