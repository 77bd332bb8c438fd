//go:build linux

package docker

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// deniedCalls are of no use to a program that minds its own business, and have been ways out
// of containers. The profile of the engines allows some of them, or did.
var deniedCalls = []string{
	"add_key", "bpf", "io_uring_enter", "io_uring_register", "io_uring_setup", "kcmp", "keyctl", "perf_event_open", "pidfd_getfd",
	"process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "request_key", "userfaultfd",
}

// deniedRequests are the lower halves of requests to ioctl(2): FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR. By them the owner of
// a file gives it to another project of the kernel's quotas, which may be that of another sandbox.
var deniedRequests = []uint64{0x6602, 0x5820}

// otherRequests are rules that allow ioctl(2) with any other request: one for each value of the upper bits with which
// none of deniedRequests begins, but for their last bit. The kernel looks at 32 bits of the 64 that a rule compares.
func otherRequests() (rules []*seccomp.Syscall) {
	const half = 0xffff
	seen := map[[2]uint64]bool{}
	for bit := uint64(1 << 15); bit > 0; bit >>= 1 {
		mask := half &^ (bit - 1)
		for _, denied := range deniedRequests {
			other := denied&mask ^ bit
			begins := func(request uint64) bool { return request&mask == other }
			if seen[[2]uint64{mask, other}] || slices.ContainsFunc(deniedRequests, begins) {
				continue
			}
			seen[[2]uint64{mask, other}] = true
			rules = append(rules, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
				Names: []string{"ioctl"}, Action: specs.ActAllow,
				Args: []specs.LinuxSeccompArg{{Index: 1, Value: mask, ValueTwo: other, Op: specs.OpMaskedEqual}},
			}})
		}
	}
	return rules
}

// profile is the one of today's engines without deniedCalls and deniedRequests, and without the rules for
// capabilities, of which no sandbox has one.
func profile() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(rule *seccomp.Syscall) bool {
		rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return name == "ioctl" || slices.Contains(deniedCalls, name) })
		return len(rule.Names) == 0 || rule.Includes != nil && len(rule.Includes.Caps) > 0
	})
	p.Syscalls = append(p.Syscalls, otherRequests()...)
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
