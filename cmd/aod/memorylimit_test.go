package main

import (
	"testing"
	"testing/fstest"
)

func TestTheMemoryOfTheServersControlGroup(t *testing.T) {
	t.Parallel()
	const v1, v2 = "5:cpu,memory:/docker/abc\n3:cpuset:/x\n", "0::/system.slice/aod.service\n"
	cases := map[string]struct {
		files map[string]string
		want  int64
	}{
		"no Linux":                          {nil, 0},
		"version 2":                         {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/system.slice/aod.service/memory.max": "1000000\n"}, 1000000},
		"version 2, the one above has less": {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/system.slice/aod.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "700\n", "sys/fs/cgroup/memory.max": "900\n"}, 700},
		"version 2 without a limit":         {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/system.slice/aod.service/memory.max": "max\n"}, 0},
		"version 2 in a namespace":          {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "512\n"}, 512},
		"a path out of the namespace":       {map[string]string{"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "512\n"}, 512},
		"version 1":                         {map[string]string{"proc/self/cgroup": v1, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "2000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2000},
		"version 1 in a container":          {map[string]string{"proc/self/cgroup": v1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n"}, 4096},
		"version 1 without a limit":         {map[string]string{"proc/self/cgroup": v1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"what isn't a number":               {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "lots\n"}, 0},
		"below zero":                        {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "-1\n"}, 0},
		"beyond 64 bits":                    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "99999999999999999999\n"}, 0},
		"an empty file":                     {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": ""}, 0},
		"lines that are none":               {map[string]string{"proc/self/cgroup": "\n0\n:::\n7:memory\n"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for path, text := range c.files {
				root[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := cgroupMemory(root); got != c.want {
				t.Errorf("%d bytes, not %d", got, c.want)
			}
		})
	}
}
