// Command sbom writes what Go programs are made of, as a CycloneDX document: sbom VERSION
// BINARY... reads what the Go tool wrote into each binary, and prints the modules of all of them.
// The same binaries give the same bytes; the time is that of SOURCE_DATE_EPOCH.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION BINARY...")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, version string, binaries []string) error {
	doc, err := newDocument(version, os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	for _, binary := range binaries {
		if err := doc.add(binary); err != nil {
			return err
		}
	}
	doc.sort()
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// timeOf reads seconds since 1970; nothing is no time at all.
func timeOf(epoch string) (string, error) {
	if epoch == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %q", epoch)
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
}
