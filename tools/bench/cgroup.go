package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// charge is what a container takes of memory, in bytes.
type charge struct{ anonymous, all int64 }

// chargeOf reads the memory cgroup that a process is in, version 1 or 2.
func chargeOf(pid int) (charge, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return charge{}, err
	}
	root, all, anonymous := "/sys/fs/cgroup", "memory.current", "anon"
	at := ""
	for line := range strings.Lines(string(raw)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) == 3 && fields[1] == "memory":
			root, all, anonymous, at = "/sys/fs/cgroup/memory", "memory.usage_in_bytes", "total_rss", fields[2]
		case len(fields) == 3 && fields[1] == "" && at == "":
			at = fields[2]
		}
	}
	return readCharge(filepath.Join(root, at), all, anonymous)
}

func readCharge(dir, all, anonymous string) (c charge, err error) {
	usage, err := os.ReadFile(filepath.Join(dir, all))
	if err != nil {
		return c, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return c, err
	}
	c.all, err = strconv.ParseInt(strings.TrimSpace(string(usage)), 10, 64)
	var failure error
	c.anonymous, failure = fieldOf(stat, anonymous, 1)
	return c, errors.Join(err, failure)
}

// residentOf is the resident memory of a process, in bytes.
func residentOf(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return fieldOf(raw, "VmRSS:", 1<<10)
}

// fieldOf is the number after the first word of some line, in units of so many bytes.
func fieldOf(text []byte, name string, unit int64) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n * unit, err
		}
	}
	return 0, fmt.Errorf("there is no %q", name)
}
