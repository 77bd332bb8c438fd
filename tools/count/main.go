// Command count measures a tree of Go code: lines of product and of test code by package,
// the sizes of files and functions, named interfaces, comments and documentation. `make
// count` prints the figures of this tree.
//
// Product code is what isn't a test (_test.go), a library of tests (a directory whose name
// ends in "test"), test data or a tool (tools/). Libraries of tests count as test code.
// Lines are all lines of a file, with comments and blank ones. The size of a function is
// the lines between its braces; of an interface, its methods and embedded types.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := count(root); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func count(root string) error {
	t := newTally()
	if err := t.tree(os.DirFS(root)); err != nil {
		return err
	}
	return t.print(os.Stdout)
}
