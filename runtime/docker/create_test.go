package docker

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/agent-on-demand/aod/runtime"
)

// fill sets every field below v to something that isn't zero. Each call with another
// seed sets other values.
func fill(v reflect.Value, seed int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", seed))
	case reflect.Int64:
		v.SetInt(int64(seed))
	case reflect.Float64:
		v.SetFloat(float64(seed))
	case reflect.Bool:
		v.SetBool(seed%2 == 1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), seed)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, seed)
		fill(value, seed)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), seed)
		}
	default:
		panic("teach fill about " + v.Kind().String())
	}
}

// leaves calls do with the path and the value of every single field.
func leaves(path string, v reflect.Value, do func(path string, leaf reflect.Value)) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(path+"."+v.Type().Field(i).Name, v.Field(i), do)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		leaves(path+"[0]", v.Index(0), do)
	default:
		do(path, v)
	}
}

func TestEveryFieldOfASpecReachesTheEngine(t *testing.T) {
	type made struct {
		Config container.Config
		Host   container.HostConfig
	}
	convert := func(spec runtime.ContainerSpec) made {
		config, host := containerConfig(spec)
		return made{config, host}
	}
	var filled runtime.ContainerSpec
	fill(reflect.ValueOf(&filled).Elem(), 1)
	seen := 0
	leaves("ContainerSpec", reflect.ValueOf(&filled).Elem(), func(path string, leaf reflect.Value) {
		seen++
		if path == "ContainerSpec.Name" { // a parameter of the call itself; "a name is taken once"
			return
		}
		before := convert(filled)
		saved := reflect.New(leaf.Type()).Elem()
		saved.Set(leaf)
		fill(leaf, 2)
		if reflect.DeepEqual(before, convert(filled)) {
			t.Errorf("%s changes nothing", path)
		}
		leaf.Set(saved)
	})
	if seen < 20 {
		t.Errorf("only %d fields were tried", seen)
	}
}

func TestWhatNoSpecCanChange(t *testing.T) {
	for _, seed := range []int{0, 1, 2} {
		var spec runtime.ContainerSpec
		if seed > 0 {
			fill(reflect.ValueOf(&spec).Elem(), seed)
		}
		config, host := containerConfig(spec)
		for what, ok := range map[string]bool{
			"no capabilities":     slices.Equal(host.CapDrop, []string{"ALL"}) && len(host.CapAdd) == 0,
			"no new privileges":   slices.Equal(host.SecurityOpt, []string{"no-new-privileges", "seccomp=" + seccompProfile}) && !host.Privileged,
			"kept by the engine":  host.AutoRemove == spec.Ephemeral,
			"bounded log files":   boundedLog(host.LogConfig, spec.LogBytes),
			"no swap":             host.MemorySwap == host.Memory && host.MemorySwappiness == nil,
			"no binds":            len(host.Binds) == 0,
			"no init":             host.Init != nil && !*host.Init,
			"private IPC":         host.IpcMode == container.IPCModePrivate,
			"no terminal unasked": config.Tty == spec.Terminal && config.OpenStdin == spec.Stdin,
			"no health check":     slices.Equal(config.Healthcheck.Test, []string{"NONE"}),
			"killed when too big": host.OomKillDisable == nil,
			"no core dumps":       *host.Ulimits[0] == container.Ulimit{Name: "core"},
		} {
			if !ok {
				t.Errorf("seed %d: not %s", seed, what)
			}
		}
	}
}

// boundedLog reports that the engine keeps what is asked for and not without an end.
func boundedLog(config container.LogConfig, asked int64) bool {
	if asked == 0 {
		return config.Type == "none"
	}
	size, err := strconv.ParseInt(config.Config["max-size"], 10, 64)
	return config.Type == "json-file" && config.Config["max-file"] == "2" && err == nil && size >= 2<<20 && size > 3*min(asked, 1<<40)
}

func TestTheLogsOfEveryLimitAreBounded(t *testing.T) {
	for _, asked := range []int64{0, 1, 1 << 20, 1 << 40, 1<<63 - 1} {
		if config := logConfig(asked); !boundedLog(config, asked) {
			t.Errorf("%d bytes: %+v", asked, config)
		}
	}
}

func TestLimitsOfZeroAreNoLimits(t *testing.T) {
	_, host := containerConfig(runtime.ContainerSpec{})
	if host.PidsLimit != nil || host.Memory != 0 || host.NanoCPUs != 0 || len(host.Ulimits) != 1 {
		t.Errorf("%+v", host.Resources)
	}
}

func TestOnlyASandboxWithItsOwnHostsFileDoesWithoutTheEnginesNetworking(t *testing.T) {
	hosts := []runtime.Mount{{Source: "/data/hosts", Target: "/etc/hosts", ReadOnly: true}}
	for name, c := range map[string]struct {
		spec runtime.ContainerSpec
		want bool
	}{
		"none with a hosts file":    {runtime.ContainerSpec{Network: "none", Mounts: hosts}, true},
		"none without one":          {runtime.ContainerSpec{Network: "none"}, false},
		"none with extra hosts":     {runtime.ContainerSpec{Network: "none", Mounts: hosts, ExtraHosts: []string{"a:127.0.0.1"}}, false},
		"none on another runtime":   {runtime.ContainerSpec{Network: "none", Mounts: hosts, Runtime: "runsc"}, false},
		"bridge":                    {runtime.ContainerSpec{Network: "bridge", Mounts: hosts}, false},
		"the engine's default":      {runtime.ContainerSpec{Mounts: hosts}, false},
		"another's network":         {runtime.ContainerSpec{Network: "container:x", Mounts: hosts}, false},
		"a network with a bad name": {runtime.ContainerSpec{Network: "None", Mounts: hosts}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if config, _ := containerConfig(c.spec); config.NetworkDisabled != c.want {
				t.Errorf("NetworkDisabled is %t", config.NetworkDisabled)
			}
		})
	}
}

func TestCPUsOffered(t *testing.T) {
	for text, want := range map[string]int64{
		"Error response from daemon: Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available":   2e9,
		"Error response from daemon: range of CPUs is from 0.01 to 16.00, as there are only 16 CPUs available": 16e9,
		"range of CPUs is from 0.01 to 0.00, as there are only 0 CPUs available":                               0,
		"only 99999999999999999999 CPUs": 0,
		"no such image":                  0,
	} {
		if got, refused := cpusOffered(errors.New(text)); got != want || refused != (want > 0) {
			t.Errorf("%s: %d, %t", text, got, refused)
		}
	}
}
