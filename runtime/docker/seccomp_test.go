//go:build linux

package docker

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
)

// deniedCalls are of no use to a program that minds its own business, and have been ways out
// of containers. The profile of the engines allows some of them, or did.
var deniedCalls = []string{
	"add_key", "bpf", "io_uring_enter", "io_uring_register", "io_uring_setup", "kcmp", "keyctl", "perf_event_open", "pidfd_getfd",
	"process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "request_key", "userfaultfd",
}

// profile is the one of today's engines without deniedCalls, and without the rules for
// capabilities, of which no sandbox has one.
func profile() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(rule *seccomp.Syscall) bool {
		rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return slices.Contains(deniedCalls, name) })
		return len(rule.Names) == 0 || rule.Includes != nil && len(rule.Includes.Caps) > 0
	})
	return p
}

func TestTheProfileIsThatOfTodaysEnginesAndLess(t *testing.T) {
	want, err := json.Marshal(profile())
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("seccomp.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), seccompProfile); diff != "" {
		t.Errorf("seccomp.json isn't what UPDATE_GOLDEN=1 makes (-want +got):\n%s", diff)
	}
	for _, name := range deniedCalls {
		if json.Valid([]byte(seccompProfile)) && slices.Contains(allowed(t), name) {
			t.Errorf("%s is allowed", name)
		}
	}
}

func allowed(t *testing.T) (names []string) {
	t.Helper()
	var p struct {
		Syscalls []struct {
			Names  []string
			Action string
		}
	}
	if err := json.Unmarshal([]byte(seccompProfile), &p); err != nil {
		t.Fatal(err)
	}
	for _, rule := range p.Syscalls {
		if rule.Action == "SCMP_ACT_ALLOW" {
			names = append(names, rule.Names...)
		}
	}
	return names
}
