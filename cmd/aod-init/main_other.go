//go:build !linux

package main

import "os"

func main() {
	os.Stderr.WriteString("aod-init: runs in Linux containers only\n")
	os.Exit(125)
}
