//go:build !linux

package main

import "os"

func main() {
	os.Stderr.WriteString("aod-line: runs in Linux containers only\n")
	os.Exit(1)
}
