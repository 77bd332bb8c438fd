//go:build linux

package pid1

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

var uncounted = traffic{initreport.NotCounted, initreport.NotCounted}

// layouts are /sys/fs/cgroup as containers see it.
var layouts = []struct {
	name  string
	files map[string]string
	want  usage // without maxRSS
}{
	{
		"version 2",
		map[string]string{
			"cgroup.type":   "domain\n",
			"cpu.stat":      "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\nnr_periods 0\n",
			"memory.peak":   "4096000\n",
			"memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
			"pids.events":   "max 17\n",

			"memory.current": "8192\n",
			"io.stat":        "8:0 rbytes=4096 wbytes=100 rios=1 wios=2 dbytes=7 dios=1\n253:0 rbytes=1 wbytes=23 rios=1 wios=1 dbytes=0 dios=0\n8:16 \n",
		},
		usage{cpuSeconds: 1.5, source: initreport.Cgroup2, peakMemory: 4096000, memory: 8192, disk: traffic{4097, 123}, oomKills: 2, pidsLimitHits: 17},
	},
	{
		"version 1",
		map[string]string{
			"cpuacct/cpuacct.usage":            "1500000000\n",
			"memory/memory.max_usage_in_bytes": "4096000\n",
			"memory/memory.oom_control":        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			"pids/pids.events":                 "max 17\n",

			"memory/memory.usage_in_bytes":                    "8192\n",
			"blkio/blkio.throttle.io_service_bytes":           "8:0 Read 1\nTotal 1\n",
			"blkio/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4096\n8:0 Write 100\n8:0 Sync 4196\n8:0 Async 0\n8:0 Discard 7\n8:0 Total 4203\n253:0 Read 1\n253:0 Write 23\n253:0 Total 24\nTotal 4227\n",
		},
		usage{cpuSeconds: 1.5, source: initreport.Cgroup1, peakMemory: 4096000, memory: 8192, disk: traffic{4097, 123}, oomKills: 2, pidsLimitHits: 17},
	},
	{
		"version 1 with joined controllers",
		map[string]string{"cpu,cpuacct/cpuacct.usage": "1500000000\n", "cpu,cpuacct/cpu.stat": "nr_periods 0\n"},
		usage{memory: initreport.NotCounted, disk: uncounted, cpuSeconds: 1.5, source: initreport.Cgroup1},
	},
	{
		"version 1 with controllers joined the other way",
		map[string]string{"cpuacct,cpu/cpuacct.usage": "1500000000\n", "blkio/blkio.throttle.io_service_bytes": "8:0 Read 5\nTotal 5\n"},
		usage{cpuSeconds: 1.5, source: initreport.Cgroup1, memory: initreport.NotCounted, disk: traffic{5, 0}},
	},
	{
		"hybrid with every controller in version 1",
		map[string]string{
			"cpu,cpuacct/cpuacct.usage":        "1500000000\n",
			"memory/memory.max_usage_in_bytes": "4096000\n",
			"unified/cgroup.type":              "domain\n",
			"unified/cpu.stat":                 "usage_usec 9\n",
		},
		usage{memory: initreport.NotCounted, disk: uncounted, cpuSeconds: 1.5, source: initreport.Cgroup1, peakMemory: 4096000},
	},
	{
		"hybrid with every controller in version 2",
		map[string]string{
			"unified/cgroup.type":   "domain\n",
			"unified/cpu.stat":      "usage_usec 1500000\n",
			"unified/memory.peak":   "4096000\n",
			"unified/memory.events": "oom_kill 2\n",
			"unified/pids.events":   "max 17\n",
			"unified/io.stat":       "",
		},
		usage{cpuSeconds: 1.5, source: initreport.Cgroup2, peakMemory: 4096000, memory: initreport.NotCounted, oomKills: 2, pidsLimitHits: 17},
	},
	{
		"the whole machine's version 2, which is not ours",
		map[string]string{"cpu.stat": "usage_usec 999000000\n", "io.stat": "8:0 rbytes=1 wbytes=1\n", "memory.current": "1\n"},
		usage{memory: initreport.NotCounted, disk: uncounted, source: initreport.Rusage},
	},
	{
		"files without sense",
		map[string]string{
			"cgroup.type":           "domain\n",
			"cpu.stat":              "usage_usec -5\n",
			"cpuacct/cpuacct.usage": "9999999999999999999999\n",
			"memory.peak":           "max\n",
			"memory.events":         "oom_kill\noom 1\noom_kill x\n",
			"pids.events":           strings.Repeat("x", 10_000),
			"memory.current":        "-1\n",
			"io.stat":               "8:0 rbytes=-5 wbytes=x\nrbytes=4\n" + strings.Repeat("x", 20_000),
		},
		usage{source: initreport.Rusage, memory: initreport.NotCounted},
	},
	{"nothing", nil, usage{memory: initreport.NotCounted, disk: uncounted, source: initreport.Rusage}},
}

func TestReadCounters(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range l.files {
				writeFile(t, filepath.Join(root, name), content, 0o644)
			}
			self := rusage()
			got, want := readCounters(root), l.want
			want.maxRSS = self.maxRSS
			if want.source == initreport.Rusage {
				want.cpuSeconds = self.cpuSeconds
			}
			if want.peakMemory == 0 {
				want.peakMemory = self.maxRSS
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
