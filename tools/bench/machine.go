package main

import (
	"context"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"
)

// machine tells where the figures come from; what can't be found out is a dash.
func (b *bench) machine(ctx context.Context, now time.Time) []fact {
	return []fact{
		{"date", now.UTC().Format(time.DateOnly)},
		{"processor", afterColon("/proc/cpuinfo", "model name") + ", " + strconv.Itoa(goruntime.NumCPU()) + " cores"},
		{"memory", gibibytes(afterColon("/proc/meminfo", "MemTotal"))},
		{"kernel", firstLine(os.ReadFile("/proc/sys/kernel/osrelease"))},
		{"load before it began", load()},
		{
			"engine",
			said(ctx, "docker", "version", "--format", "Docker {{.Server.Version}}, API {{.Server.APIVersion}}"),
		},
		{
			"storage, cgroups",
			said(ctx, "docker", "info", "--format", "{{.Driver}}, version {{.CgroupVersion}} by {{.CgroupDriver}}"),
		},
		{"runc", said(ctx, "runc", "--version")},
		{"Python on the host", said(ctx, hostPython(ctx), "--version")},
		{"aod", said(ctx, b.aod, "version")},
		{"Go of the benchmark", goruntime.Version()},
	}
}

// load is how many processes wanted a processor in the last minute: where there were some,
// the figures are of a machine that had other things to do.
func load() string {
	average, _, _ := strings.Cut(firstLine(os.ReadFile("/proc/loadavg")), " ")
	return average
}

// said is the first line that a program prints.
func said(ctx context.Context, name string, args ...string) string {
	return firstLine(exec.CommandContext(ctx, name, args...).Output())
}

func firstLine(raw []byte, err error) string {
	line, _, _ := strings.Cut(string(raw), "\n")
	if line = strings.TrimSpace(line); err != nil || line == "" {
		return "-"
	}
	return line
}

// afterColon is the value of the first line of a file in /proc with this name.
func afterColon(path, name string) string {
	raw, err := os.ReadFile(path)
	for line := range strings.Lines(string(raw)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return firstLine([]byte(value), err)
		}
	}
	return "-"
}

// gibibytes of a size as /proc has it: "24684084 kB".
func gibibytes(size string) string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(size, " kB"), 64)
	if err != nil {
		return "-"
	}
	return digits(kib/(1<<20)) + " GiB"
}
