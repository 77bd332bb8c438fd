package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnUploadHasTheStricterPolicy(t *testing.T) {
	c := mustLoad(t, given{file: `
max_timeout: 2h
policy:
  networks: [bridge]
  memory: 1GiB
  pids: 100
  runtimes: [runsc, kata]
  runtime: runsc
  uploads:
    networks: [none, bridge]
    memory: 4GiB
    pids: 50
    runtimes: [any]
    runtime: kata
    retries: 7
unit:
  own:
    policy: {networks: [], memory: 8GiB, timeout: 90m, runtimes: [x], warm: 0, read_only: false, build_fetch: true}
`})
	base := PolicyConfig{
		Networks: []string{"bridge"}, Memory: 1 << 30, CPUs: 1024, PIDs: 100, Output: 16 << 40, Timeout: 2 * time.Hour, Retries: 100,
		Runtimes: []string{"runsc", "kata"}, Runtime: "runsc", Reuse: 10_000, Warm: 1000,
		BuildNetworks: []string{"none", "default"}, Image: 16 << 40, Upstreams: []string{"any"}, Models: []string{"any"},
	}
	upload := base
	upload.CPUs, upload.PIDs, upload.Output, upload.Timeout, upload.Retries = 2, 50, 1<<30, time.Hour, 7
	upload.Runtime, upload.ReadOnly, upload.Reuse, upload.Warm = "kata", true, 1, 0
	upload.BuildNetworks, upload.Image, upload.Upstreams, upload.Models = []string{"none"}, 4<<30, nil, nil
	own := func(p PolicyConfig) PolicyConfig {
		p.BuildFetch = true
		p.Networks, p.Memory, p.Timeout, p.Runtimes, p.Warm, p.ReadOnly = []string{}, 8<<30, 90*time.Minute, []string{"x"}, 0, false
		return p
	}
	for _, c2 := range []struct {
		unit     string
		uploaded bool
		want     PolicyConfig
		from     string
	}{
		{"other", false, base, "policy.memory policy.networks policy.pids max_timeout"},
		{"other", true, upload, "policy.memory policy.networks policy.uploads.pids policy.uploads.timeout"},
		{"own", false, own(base), "unit.own.policy.memory unit.own.policy.networks policy.pids unit.own.policy.timeout"},
		{"own", true, own(upload), "unit.own.policy.memory unit.own.policy.networks policy.uploads.pids unit.own.policy.timeout"},
	} {
		got, from := c.PolicyFor(c2.unit, c2.uploaded)
		if diff := cmp.Diff(c2.want, got); diff != "" {
			t.Errorf("%s, uploaded %v: %s", c2.unit, c2.uploaded, diff)
		}
		said := strings.Join([]string{from["memory"], from["networks"], from["pids"], from["timeout"]}, " ")
		if said != c2.from || len(from) != len(got.settings()) {
			t.Errorf("%s, uploaded %v: from %s, %v", c2.unit, c2.uploaded, said, slices.Sorted(maps.Keys(from)))
		}
	}
}

func TestWhatAUnitIsGivenFitsItsPolicy(t *testing.T) {
	_, err := load(t, given{file: `
max_timeout: 1h
policy: {networks: [none]}
unit:
  a: {network: bridge}
  b: {network: bridge, policy: {networks: [bridge]}}
  c: {policy: {timeout: 2h}}
  d: {models: [small, big], policy: {models: [small]}}
`})
	want := []string{
		"aod.yaml:5: unit.a.network: policy.networks doesn't allow the network bridge",
		"aod.yaml:7: unit.c.policy.timeout: it is longer than max_timeout, 1h",
		"aod.yaml:8: unit.d.models: unit.d.policy.models doesn't allow the model big",
	}
	if diff := cmp.Diff(want, findings(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestLoadUnit(t *testing.T) {
	t.Run("reads what a unit gets", func(t *testing.T) {
		t.Chdir(t.TempDir())
		write(t, "unit.yaml", "env: {A: x, N: 1.50, T: true}\nnetwork: bridge\nmay_call: [b]\nmay_not_call: [c]\ntimeout: 5s\nlimits: {memory: 1GiB, cpus: 0.5, pids: 9, output: 1MiB, log: 2MiB}\n")
		got, err := LoadUnit("unit.yaml")
		if err != nil {
			t.Fatal(err)
		}
		want := UnitConfig{
			Env: map[string]string{"A": "x", "N": "1.50", "T": "true"}, Network: "bridge", MayCall: []string{"b"}, MayNotCall: []string{"c"},
			Timeout: 5 * time.Second, Limits: LimitsConfig{Memory: 1 << 30, CPUs: 0.5, PIDs: 9, Output: 1 << 20, Log: 2 << 20},
			Retries: UnitsOwn, Warm: UnitsOwn, MaxStdin: 50 << 20,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("gives nothing by an empty file", func(t *testing.T) {
		t.Chdir(t.TempDir())
		write(t, "unit.yaml", "")
		if got, err := LoadUnit("unit.yaml"); err != nil || got.Env != nil || got.Timeout != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("tells all that is wrong", func(t *testing.T) {
		t.Chdir(t.TempDir())
		write(t, "unit.yaml", "env: {A B: x, AOD_URL: y}\nnetwork: host\nqueue: 5\nunit: {}\npolicy: {}\ncolour: red\nlimits: {cpus: many}\n")
		_, err := LoadUnit("unit.yaml")
		want := []string{
			`unit.yaml:1: env: "A B" can't be the name of a variable`,
			`unit.yaml:1: env: "AOD_URL" is AOD's own`,
			`unit.yaml:2: network: "host" isn't known here`,
			"unit.yaml:3: queue has a meaning in the server's file only",
			"unit.yaml:4: unit has a meaning in the server's file only",
			"unit.yaml:5: policy has a meaning in the server's file only",
			`unit.yaml:6: there is no setting "colour"`,
			`unit.yaml:7: limits.cpus: it can't be the text "many"`,
		}
		if diff := cmp.Diff(want, findings(t, err)); diff != "" {
			t.Error(diff)
		}
	})
}
