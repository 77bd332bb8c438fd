//go:build linux

package pid1

import (
	"strings"
	"syscall"
)

// environ returns our environment with the entries added. An entry replaces one of the same
// name. Setenv would copy every entry, and obey those meant for the program (GODEBUG).
func environ(entries []string) []string {
	all := syscall.Environ()
	if len(entries) == 0 {
		return all
	}
	places := make(map[string]int, len(all)+len(entries))
	for i, entry := range all {
		places[nameOf(entry)] = i
	}
	for _, entry := range entries {
		i, known := places[nameOf(entry)]
		if known {
			all[i] = entry
			continue
		}
		places[nameOf(entry)] = len(all)
		all = append(all, entry)
	}
	return all
}

func nameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}

// valueIn returns the value of a name, or "".
func valueIn(env []string, name string) string {
	for _, entry := range env {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}
