package main

import (
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// memoryShare is how much of its control group's memory the server may take, in percent, before Go
// collects garbage at any price. The rest is for what Go doesn't count.
const memoryShare = 90

// garbageShare is how much garbage there may be beside what is in use, in percent. With the 100 of Go,
// what request_memory lets in could take twice its size.
const garbageShare = 50

// boundMemory has Go collect garbage early, and keep below the memory that the kernel leaves the server,
// unless the operator has set GOGC or GOMEMLIMIT.
func boundMemory(logger *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageShare)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return // Go has read it
	}
	group := cgroupMemory(os.DirFS("/"))
	if group == 0 {
		return
	}
	limit := group / 100 * memoryShare
	debug.SetMemoryLimit(limit)
	logger.Info("memory limit set", "cgroup_bytes", group, "limit_bytes", limit)
}

// noLimit is what version 1 of control groups says at least where there is no limit, in bytes.
const noLimit = 1 << 60

// cgroupMemory returns the least that the control group of this process or one above it may take
// of memory, in bytes; 0: there is no limit.
func cgroupMemory(root fs.FS) (least int64) {
	raw, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // id, controllers, path
		if len(fields) < 3 {
			continue
		}
		top, name := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if !slices.Contains(strings.Split(fields[1], ","), "memory") {
				continue
			}
			top, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			if limit := limitIn(root, path.Join(top, dir, name)); limit > 0 && (least == 0 || limit < least) {
				least = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// limitIn reads a limit in bytes; 0: there is none. A container may see its own group alone, so that
// those above it aren't there.
func limitIn(root fs.FS, name string) int64 {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil || limit <= 0 || limit >= noLimit { // "max" isn't a number
		return 0
	}
	return limit
}
