// Command image writes the server's image as a file for `docker load`: image VERSION ARCH PROGRAM
// FILE, in the root of the repository, whose Dockerfile it carries out. It needs no engine, and
// the same input gives the same bytes; all times are that of SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: image VERSION ARCH PROGRAM FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(version, arch, program, file string) error {
	at, err := timeOf(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		return err
	}
	recipe, err := read(string(text))
	if err != nil {
		return fmt.Errorf("the Dockerfile: %w", err)
	}
	raw, err := os.ReadFile(program) //nolint:gosec // G703: whoever starts the command names it
	if err != nil {
		return err
	}
	image, err := recipe.image(raw, options{version: version, arch: arch, at: at})
	if err != nil {
		return err
	}
	return os.WriteFile(file, image, 0o644) //nolint:gosec // everybody may read an image
}

// timeOf reads seconds since 1970; nothing is 1970.
func timeOf(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %q", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
