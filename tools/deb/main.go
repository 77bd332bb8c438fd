// Command deb writes a Debian package: deb VERSION ARCH PROGRAM FILE, in the root of the
// repository, from which it takes tools/packaging/deb and the guides. The same input gives the same
// bytes, on any system; all times are that of SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: deb VERSION ARCH PROGRAM FILE")
		os.Exit(2)
	}
	p := pack{root: os.DirFS("."), version: os.Args[1], arch: os.Args[2]}
	if err := run(p, os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "deb:", err)
		os.Exit(1)
	}
}

func run(p pack, program, file string) (err error) {
	if p.at, err = timeOf(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if p.program, err = os.ReadFile(program); err != nil { //nolint:gosec // G703: whoever starts the command names it
		return err
	}
	raw, err := p.bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644) //nolint:gosec // everybody may read a package
}

// timeOf reads seconds since 1970; nothing is 1970.
func timeOf(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %q", epoch)
	}
	return time.Unix(seconds, 0), nil
}
