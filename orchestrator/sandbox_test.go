package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestTheSandboxFromInside(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	log, record := p.logs(`
echo "interfaces: $(ls /sys/class/net | xargs)"
echo "uid: $(id -u)"
grep -E 'CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status | tr '\t' ' '
touch /x 2>&1; touch /etc/x 2>&1; touch /io/input/x 2>&1; touch /io/handoff/incoming/x 2>&1; touch /run/aod/x 2>&1; echo > /run/aod/init
echo x > /tmp/x && echo x > /workspace/x && echo x > /io/handoff/outgoing/x && echo "writable: /tmp /workspace outgoing"
echo "home: $HOME"
echo "pid 1: $(tr '\0' ' ' < /proc/1/cmdline)"
echo "pids: $(cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null)"
echo "files: $(ulimit -n) core: $(ulimit -c)"
echo "hosts: $(getent hosts localhost host.docker.internal | awk '{print $1}' | xargs)"
perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die; IO::Socket::INET->new("127.0.0.1:" . $l->sockport) and print "loopback is up\n"'
perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "192.0.2.1:80", Timeout => 2) or print "outside: $!\n"'
echo "volume: $(stat -f -c %T /var/spool)"
# io_uring_setup, ptrace, process_vm_readv, keyctl, bpf, perf_event_open, userfaultfd
case $(uname -m) in x86_64) calls=425,101,310,250,321,298,323 ;; *) calls=425,117,270,219,280,241,282 ;; esac
perl -e "for ($calls) { \$! = 0; syscall(\$_, 0, 0, 0, 0, 0); push @said, \$! + 0 } print qq(errors of denied calls: @said\n)"
# FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, both with bits that the kernel drops, and FIONREAD
perl -e "open F, '>', '/workspace/f'; \$b = pack 'x64'; for (0x40086602, 0x401c5820, 0x740086602, 0x7401c5820, 0x541b) { \$! = 0; ioctl(F, \$_, \$b); push @said, \$! + 0 } print qq(errors of requests: @said\n)"
`)
	if record.Outcome != api.Success {
		t.Fatal(show(record))
	}
	for _, want := range []string{
		"interfaces: lo\n", "CapEff: 0000000000000000", "CapPrm: 0000000000000000", "CapBnd: 0000000000000000",
		"NoNewPrivs: 1", "Seccomp: 2",
		"'/x': Read-only file system", "'/etc/x': Read-only file system", "'/io/input/x': Read-only file system",
		"'/io/handoff/incoming/x': Read-only file system", "'/run/aod/x': Read-only file system",
		"writable: /tmp /workspace outgoing", "home: /workspace", "pid 1: /run/aod/init -control /run/aod/init.sock -end lines -- bash /io/input/script", p.pids(), "files: 1024 core: 0",
		"hosts: ::1 127.0.0.1", "loopback is up", "outside: Network is unreachable", "volume: tmpfs",
		"errors of denied calls: 1 1 1 1 1 1 1", "errors of requests: 1 1 1 1 0",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("inside the sandbox, %q is not true", want)
		}
	}
	if strings.Contains(log, "uid: 0") {
		t.Error("the sandbox runs as root")
	}
	t.Log(log)
}

func TestLimitsEndAsOutcomes(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "limits: {memory: 64MiB, pids: 64, output: 8MiB, log: 4KiB, timeout: 20s}\n")
	cases := []struct {
		name, script string
		outcome      api.Outcome
		exit         int
		says         string
	}{
		{"a memory hog", `tail /dev/zero`, api.OutOfMemory, 137, "its memory limit of 64 MiB"},
		{"a fork bomb", `b() { b | b & }; trap 'exit 9' TERM; for i in $(seq 200); do sleep 30 & done; wait; exit 9`, api.LimitExceeded, -1, "its limit of 64 processes and threads"},
		// A hole before its end, so that its blocks, which are watched, don't reach the same limit a moment before.
		{"one file over the limit", `echo x | dd of=/workspace/x bs=1 seek=100M`, api.LimitExceeded, 153, "a file of more than 64 MiB"},
		{"too much output", `head -c 9M /dev/zero > /io/output/x; echo '{}' > /io/output.json`, api.LimitExceeded, -1, "more than 8388608 bytes"},
		{"a full disk", `while :; do head -c 1M /dev/zero >> /workspace/x; sleep 0.01; done`, api.LimitExceeded, -1, "wrote more than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			record := p.run(c.script)
			if record.Outcome != c.outcome || c.exit >= 0 && *record.ExitCode != c.exit || *record.ExitCode == 0 {
				t.Errorf("outcome %s, want %s\n%s", record.Outcome, c.outcome, show(record))
			}
			if !strings.Contains(said(record), c.says) {
				t.Errorf("the user is not told %q but:\n%s", c.says, said(record))
			}
		})
	}
}

func TestALogFloodIsCut(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "limits: {log: 64KiB}\n")
	log, record := p.logs(`yes "a line of the flood" | head -c 4M; head -c 1M /dev/zero | tr '\0' x; echo; echo done >&2`)
	if record.Outcome != api.Success || !record.Log.Truncated || record.Log.Bytes > 64<<10 {
		t.Errorf("%s", show(record))
	}
	if len(log) > 64<<10 || len(log) < 32<<10 {
		t.Errorf("%d bytes of log came through", len(log))
	}
}

// The engine and this process would spend much more on a flood than the program that writes it.
func TestAFloodWaitsForItsReaders(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "limits: {log: 64KiB}\n")
	log, record := p.logs(`
perl -e '$| = 1; $b = ("x" x 1023 . "\n") x 64; $t = time; while (time - $t < 3) { $n += syswrite(STDOUT, $b) }
printf("%d %d\n", $n, time - $t) if open(STDOUT, ">", "/workspace/said")'
cp /workspace/said /io/output/said`)
	if record.Outcome != api.Success || !record.Log.Truncated || len(log) > 64<<10 {
		t.Fatalf("%s", show(record))
	}
	said, err := os.ReadFile(filepath.Join(p.out, "said"))
	if err != nil {
		t.Fatal(err)
	}
	var bytes, seconds int
	if _, err := fmt.Sscan(string(said), &bytes, &seconds); err != nil {
		t.Fatalf("%v: %q", err, said)
	}
	const buffered, rate = 16 << 20, 4 << 20                                 // pipes and sockets on the way take some
	if most := buffered + rate*(seconds+1); bytes > most || bytes < 64<<10 { // one write goes through, whoever reads
		t.Errorf("the program could write %d bytes in %d seconds, want at most %d", bytes, seconds, most)
	}
}

// processesNamed are those of this machine whose command line has a word.
func processesNamed(t *testing.T, word string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, name := range lines {
		if raw, err := os.ReadFile(name); err == nil && strings.Contains(string(raw), word) { // else it has ended
			found = append(found, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return found
}

func TestTheEndOfARunIsTheEndOfItsProcesses(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	if p.remote() {
		t.Skip("the engine's processes are elsewhere")
	}
	for name, c := range map[string]struct {
		script  string
		outcome api.Outcome
	}{
		"it ends by itself": {`echo '{}' > /io/output.json`, api.Success},
		"it is stopped":     {`while :; do sleep 1; done`, api.WasCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			word := "1000000." + strconv.FormatUint(rand.Uint64(), 10) // of no other test's processes
			req := p.request(`trap '' TERM; setsid bash -c 'trap "" TERM; touch /tmp/up; exec sleep ` + word + `' & until [ -e /tmp/up ]; do :; done; echo started; ` + c.script)
			ctx, cancel := context.WithCancel(trusted.Context(t))
			defer cancel()
			seen := c.outcome == api.Success // it doesn't wait to be seen
			req.Observe = func(e run.Event) {
				if !seen && e.Log != nil && e.Log.Text == "started" {
					seen = testkit.Within(testkit.Patience, func() bool { return len(processesNamed(t, word)) > 0 }) // it has no name amid its exec
					cancel()
				}
			}
			record, err := p.submit(ctx, req)
			if err != nil || record.Outcome != c.outcome {
				t.Fatalf("%v\n%s", err, show(record))
			}
			if left := processesNamed(t, word); !seen || len(left) > 0 {
				t.Errorf("seen while it ran: %v; still there: %q", seen, left)
			}
		})
	}
}

func TestTheUserOfAnImageDoesNotCount(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	write(t, filepath.Join(p.dir, "Dockerfile"), strings.Replace(probeFiles["Dockerfile"], "CMD", "USER 0:0\nCMD", 1))
	log, record := p.logs(`echo "user $(id -u) group $(id -g)"; grep CapEff /proc/self/status`)
	if record.Outcome != api.Success || strings.Contains(log, "user 0") || strings.Contains(log, "group 0") || !strings.Contains(log, "user ") ||
		!strings.Contains(log, "CapEff:\t0000000000000000") {
		t.Errorf("%s\n%s", log, show(record))
	}
}

func TestATimeoutKillsTheWholeTree(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	req := p.request(`trap '' TERM; (trap '' TERM; sleep 1000) & sleep 1000`)
	req.Timeout = 300 * time.Millisecond
	began := time.Now()
	record, err := p.submit(trusted.Context(t), req)
	if err != nil || record.Outcome != api.TimedOut || record.State != api.Timeout {
		t.Fatalf("%v\n%s", err, show(record))
	}
	if took := time.Since(began); took > testkit.Patience { // its processes would take 1000 s
		t.Errorf("took %v", took)
	}
	if !strings.Contains(said(record), "stopped after 300ms") {
		t.Error(said(record))
	}
}

// pids is the limit of 128 with what AOD's own programs take.
func (p *probe) pids() string {
	if p.remote() {
		return "pids: 152"
	}
	return "pids: 142"
}

func TestCancellingEndsTheRun(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	ctx, cancel := context.WithCancelCause(trusted.Context(t))
	defer cancel(nil)
	req := p.request(`echo ready; sleep 1000`)
	req.Observe = func(e run.Event) {
		if e.Log != nil {
			cancel(errors.New("nobody waits"))
		}
	}
	record, err := p.submit(ctx, req)
	if err != nil || record.Outcome != api.WasCancelled || record.State != api.Cancelled {
		t.Fatalf("%v\n%s", err, show(record))
	}
	if !strings.Contains(said(record), "nobody waits") {
		t.Error(said(record))
	}
}

func TestUsageIsCounted(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "limits: {memory: 256MiB}\n")
	_, record := p.logs(`perl -e '$x = "x" x (64<<20); $i++ while $i < 2e7'`)
	if record.Usage == nil || record.Usage.CPUSeconds < 0.1 || record.Usage.CPUSeconds > 60 {
		t.Fatalf("usage %+v", record.Usage)
	}
	if record.Usage.PeakMemoryBytes < 64<<20 || record.Usage.PeakMemoryBytes > 257<<20 {
		t.Errorf("peak memory %d", record.Usage.PeakMemoryBytes)
	}
}

func TestEveryTransitionIsRecorded(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	_, record := p.logs(`true`)
	var states []string
	for _, transition := range record.Transitions {
		states = append(states, string(transition.State))
	}
	if got := strings.Join(states, " "); got != "idle starting running completed cleanup idle" {
		t.Errorf("states %q", got)
	}
}
