// Command count measures a tree of Go code: lines of product and of test code by package,
// the sizes of files and functions, named interfaces, comments and documentation. `make
// count` prints the figures of this tree. It fails when one is above its bound (bounds.go).
//
// Product code is what isn't a test (_test.go), a library of tests (in or below a directory
// whose name ends in "test", or is testing, testkit or fuzzbound), test data or a tool
// (tools/). Libraries of tests count as test code. Columns are characters, and a tab is
// four.
// Lines are all lines of a file, with comments and blank ones. The size of a function is
// the lines between its braces; of an interface, its methods and embedded types.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := count(context.Background(), os.Stdout, root); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func count(ctx context.Context, out io.Writer, root string) error {
	t := newTally()
	if err := t.tree(os.DirFS(root)); err != nil {
		return err
	}
	if err := t.print(out); err != nil {
		return err
	}
	tracked, err := trackedFiles(ctx, root)
	if err != nil {
		return err
	}
	imports, err := kernelImports(ctx, root)
	if err != nil {
		return err
	}
	return check(out, t.figures(tracked, imports))
}
