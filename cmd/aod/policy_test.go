package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// policed is a service with the settings of a server's file, over an engine that does nothing.
func policed(t *testing.T, file string) (service *orchestrator.Service, units string) {
	t.Helper()
	work := t.TempDir()
	units = filepath.Join(work, "units")
	if err := os.MkdirAll(units, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "units: [units]\nmemory: 1TiB\n"+file, work, "aod.yaml")
	c, err := config.Load(config.Options{File: filepath.Join(work, "aod.yaml"), Data: filepath.Join(work, "data")})
	if err != nil {
		t.Fatalf("%v: %v", err, fault.Public(err).Findings)
	}
	opts, err := serviceOptions(newReloader(c, slog.New(slog.DiscardHandler)), home(c))
	if err != nil {
		t.Fatal(err)
	}
	engine := enginetest.NewFake(nil)
	engine.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{dockertest.Image}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64", SizeBytes: 100 << 20})
	opts.Kinds = kindsOver(container.New(engine, containerOptions(c, secrets.Files{Dir: c.Secrets}, opts.Logger)), remote.New(remote.Options{Secrets: secrets.Files{Dir: c.Secrets}, Door: egress.New(egress.Options{})}))
	opts.Features = featuresOver(featureOptions{door: egress.New(egress.Options{}), pushes: pushesOf(c)})
	if service, err = orchestrator.NewService(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	if err := service.Start(trusted.Context(t)); err != nil {
		t.Fatal(err)
	}
	return service, units
}

// policedFiles are a capsule that asks for something in its agent.yaml.
func policedFiles(agent string) map[string]string {
	return map[string]string{
		"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"/run\"]\n", "agent.yaml": agent,
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	}
}

func uploadOf(t *testing.T, files map[string]string) *bytes.Buffer {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &archive
}

// told is what the policy makes of a unit: the settings that differ from "before", each
// "setting=value", then what was lowered, then the refusal.
func told(u api.Unit, before map[string]any) string {
	var after map[string]any
	raw, _ := json.Marshal(u.Policy)
	_ = json.Unmarshal(raw, &after)
	var all []string
	for _, key := range []string{"timeout", "max_timeout", "retries", "network", "egress", "read_only", "runtime", "models", "memory_bytes", "cpus", "pids", "output_bytes", "reuse", "warm"} {
		if fmt.Sprint(after[key]) != fmt.Sprint(before[key]) {
			all = append(all, fmt.Sprintf("%s=%v", key, after[key]))
		}
	}
	for _, l := range u.Policy.Lowered {
		all = append(all, fmt.Sprintf("%s %s->%s by %s", l.Setting, l.Asked, l.Holds, l.Rule))
	}
	if u.Policy.Refusal != nil {
		all = append(all, "refused: "+u.Policy.Refusal.Message+" | "+u.Policy.Refusal.Hint)
	}
	return strings.Join(all, "; ")
}

// plain is the policy of a unit that asks for nothing.
func plain(timeout string) map[string]any {
	return map[string]any{
		"timeout": "1m", "max_timeout": timeout, "retries": 3, "network": "none", "read_only": true,
		"memory_bytes": float64(512 << 20), "cpus": 1, "pids": 128, "output_bytes": float64(1 << 30), "reuse": 1,
	}
}

// Every rule, for a unit of a directory and for an upload, and what the unit's own block says.
func TestThePolicyOfUnits(t *testing.T) {
	t.Parallel()
	const refused = `refused: "u" may not be run here: `
	for _, c := range []struct{ name, agent, file, directory, upload string }{
		{"nothing is asked for", "", "", "", ""},
		{
			"the network", "network: bridge", "", "network=bridge",
			refused + "policy.uploads.networks doesn't allow it the network bridge | the operator can allow it in the server's file: unit.u.policy.networks: [none, bridge]",
		},
		{
			"no network for anybody", "network: bridge", "policy: {networks: [none]}",
			"network=bridge; " + refused + "policy.networks doesn't allow it the network bridge | the operator can allow it in the server's file: unit.u.policy.networks: [none, bridge]",
			refused + "policy.networks doesn't allow it the network bridge | the operator can allow it in the server's file: unit.u.policy.networks: [none, bridge]",
		},
		{"the network is the unit's", "network: bridge", "policy: {networks: [none]}\nunit: {u: {policy: {networks: [none, bridge]}}}", "network=bridge", "network=bridge"},
		{"the network is given", "", "unit: {u: {network: bridge, policy: {networks: [none, bridge]}}}", "network=bridge", "network=bridge"},
		{
			"memory", "limits: {memory: 64GiB}", "policy: {memory: 8GiB}",
			"memory_bytes=8.589934592e+09; limits.memory 64GiB->8GiB by policy.memory", "memory_bytes=2.147483648e+09; limits.memory 64GiB->2GiB by policy.uploads.memory",
		},
		{
			"the stricter of both", "limits: {memory: 64GiB}", "policy: {memory: 1GiB}",
			"memory_bytes=1.073741824e+09; limits.memory 64GiB->1GiB by policy.memory", "memory_bytes=1.073741824e+09; limits.memory 64GiB->1GiB by policy.memory",
		},
		{"the unit's memory", "limits: {memory: 64GiB}", "policy: {memory: 1GiB}\nunit: {u: {policy: {memory: 64GiB}}}", "memory_bytes=6.8719476736e+10", "memory_bytes=6.8719476736e+10"},
		{"memory below the default", "", "policy: {memory: 64MiB}", "memory_bytes=6.7108864e+07", "memory_bytes=6.7108864e+07"},
		{"memory is given", "limits: {memory: 64MiB}", "unit: {u: {limits: {memory: 1GiB}}}", "memory_bytes=1.073741824e+09", "memory_bytes=1.073741824e+09"},
		{
			"memory is given beyond the policy", "", "policy: {memory: 4GiB}\nunit: {u: {limits: {memory: 5GiB}}}",
			"memory_bytes=4.294967296e+09; limits.memory 5GiB->4GiB by policy.memory", "memory_bytes=2.147483648e+09; limits.memory 5GiB->2GiB by policy.uploads.memory",
		},
		{"cpus", "limits: {cpus: 9.5}", "policy: {cpus: 4}", "cpus=4; limits.cpus 9.5->4 by policy.cpus", "cpus=2; limits.cpus 9.5->2 by policy.uploads.cpus"},
		{"pids", "limits: {pids: 9000}", "policy: {pids: 4000}", "pids=4000; limits.pids 9000->4000 by policy.pids", "pids=512; limits.pids 9000->512 by policy.uploads.pids"},
		{
			"output", "limits: {output: 100GiB}", "policy: {output: 2GiB}",
			"output_bytes=2.147483648e+09; limits.output 100GiB->2GiB by policy.output", "limits.output 100GiB->1GiB by policy.uploads.output",
		},
		{
			"timeout", "limits: {timeout: 48h}", "policy: {timeout: 12h}",
			"timeout=12h; max_timeout=12h; limits.timeout 48h->12h by policy.timeout", "timeout=1h; limits.timeout 48h->1h by policy.uploads.timeout",
		},
		{
			"max_timeout", "limits: {timeout: 48h}", "max_timeout: 5s",
			"timeout=5s; max_timeout=5s; limits.timeout 48h->5s by max_timeout", "timeout=5s; max_timeout=5s; limits.timeout 48h->5s by max_timeout",
		},
		{"the unit's timeout", "limits: {timeout: 48h}", "unit: {u: {timeout: 2s}}", "timeout=2s; max_timeout=2s", "timeout=2s; max_timeout=2s"},
		{
			"the unit's timeout beyond an upload's", "", "unit: {u: {timeout: 2h}}",
			"timeout=2h; max_timeout=2h", "timeout=1h; limits.timeout 2h->1h by policy.uploads.timeout",
		},
		{"the unit's own policy of timeouts", "limits: {timeout: 5h}", "unit: {u: {policy: {timeout: 6h}}}", "timeout=5h; max_timeout=6h", "timeout=5h; max_timeout=6h"},
		{"retries", "retries: 100", "policy: {retries: 5}", "retries=5; retries 100->5 by policy.retries", "retries 100->3 by policy.uploads.retries"},
		{"the server's retries", "", "retries: 9", "retries=9", ""},
		{"retries are given", "", "unit: {u: {retries: 2}}", "retries=2", "retries=2"},
		{
			"a runtime", "runtime: runsc", "", "runtime=runsc",
			"runtime=runsc; " + refused + `policy.uploads.runtimes doesn't allow it the runtime "runsc" | the operator can allow it in the server's file: unit.u.policy.runtimes: [runsc]`,
		},
		{
			"only one runtime", "runtime: kata", "policy: {runtimes: [runsc]}",
			"runtime=kata; " + refused + `policy.runtimes doesn't allow it the runtime "kata" | the operator can allow it in the server's file: unit.u.policy.runtimes: [runsc, kata]`, "",
		},
		{"a forced runtime", "", "policy: {runtime: runsc}", "runtime=runsc", "runtime=runsc"},
		{"a forced runtime instead of another", "runtime: kata", "policy: {runtime: runsc}", "runtime=runsc", "runtime=runsc"},
		{"a forced runtime of uploads", "", "policy: {uploads: {runtime: runsc}}", "", "runtime=runsc"},
		{
			"a writable root", "read_only: false", "", "read_only=<nil>",
			refused + "policy.uploads.read_only doesn't allow it a writable root file system (read_only: false) | the operator can allow it in the server's file: unit.u.policy.read_only: false",
		},
		{
			"no writable root", "read_only: false", "policy: {read_only: true}",
			"read_only=<nil>; " + refused + "policy.read_only doesn't allow it a writable root file system (read_only: false) | the operator can allow it in the server's file: unit.u.policy.read_only: false", "",
		},
		{"the unit's writable root", "read_only: false", "unit: {u: {policy: {read_only: false}}}", "read_only=<nil>", "read_only=<nil>"},
		{
			"hosts by default", "egress: [a.example, 'http://b.example']", "",
			"egress=[a.example http://b.example]; " + refused + "policy.egress doesn't allow it to reach a.example, http://b.example | the operator can allow it in the server's file: unit.u.policy.egress: [a.example, http://b.example]",
			"egress=[a.example http://b.example]; " + refused + "policy.egress doesn't allow it to reach a.example, http://b.example | the operator can allow it in the server's file: unit.u.policy.egress: [a.example, http://b.example]",
		},
		{
			"hosts beyond the cap", "egress: [x.a.example, '*.b.example']", "policy: {egress: ['*.a.example']}",
			"egress=[x.a.example *.b.example]; " + refused + `policy.egress doesn't allow it to reach *.b.example | the operator can allow it in the server's file: unit.u.policy.egress: ["*.a.example", "*.b.example"]`,
			"egress=[x.a.example *.b.example]; " + refused + `policy.uploads.egress doesn't allow it to reach x.a.example, *.b.example | the operator can allow it in the server's file: unit.u.policy.egress: [x.a.example, "*.b.example"]`,
		},
		{"hosts within the cap", "egress: [x.a.example]", "policy: {egress: ['*.a.example'], uploads: {egress: [x.a.example, y.example]}}", "egress=[x.a.example]", "egress=[x.a.example]"},
		{"the unit's hosts", "egress: [a.example]", "unit: {u: {policy: {egress: [a.example]}}}", "egress=[a.example]", "egress=[a.example]"},
		{
			"models by default", "models: [small, big]", "", "models=[small big]",
			"models=[small big]; " + refused + "policy.uploads.models doesn't allow it to ask small, big | the operator can allow it in the server's file: unit.u.policy.models: [small, big]",
		},
		{
			"a model beyond the policy", "model: big", "policy: {models: [small], uploads: {models: [any]}}",
			"models=[big]; " + refused + "policy.models doesn't allow it to ask big | the operator can allow it in the server's file: unit.u.policy.models: [small, big]",
			"models=[big]; " + refused + "policy.models doesn't allow it to ask big | the operator can allow it in the server's file: unit.u.policy.models: [small, big]",
		},
		{"a model of uploads", "model: small", "policy: {uploads: {models: [small]}}", "models=[small]", "models=[small]"},
		{"the unit's models", "models: [big]", "unit: {u: {policy: {models: [big]}}}", "models=[big]", "models=[big]"},
		{
			"models are given", "", "unit: {u: {models: [small]}}", "models=[small]",
			"models=[small]; " + refused + "policy.uploads.models doesn't allow it to ask small | the operator can allow it in the server's file: unit.u.policy.models: [small]",
		},
		{"reuse", "reuse: 50", "policy: {reuse: 10}", "reuse=10; reuse 50->10 by policy.reuse", "reuse 50->1 by policy.uploads.reuse"},
		{"the unit's reuse", "reuse: 50", "unit: {u: {policy: {reuse: 20}}}", "reuse=20; reuse 50->20 by unit.u.policy.reuse", "reuse=20; reuse 50->20 by unit.u.policy.reuse"},
		{"warm", "warm: 5", "policy: {warm: 2}", "warm=2; warm 5->2 by policy.warm", "warm 5->0 by policy.uploads.warm"},
		{"warm is given", "", "unit: {u: {warm: 4, policy: {warm: 4}}}", "warm=4", "warm=4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Run("of a directory", func(t *testing.T) {
				t.Parallel()
				service, units := policed(t, c.file)
				for name, text := range policedFiles(c.agent) {
					write(t, text, units, "u", name)
				}
				u, err := service.Units.Show(trusted.Context(t), "u")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.directory, told(u, plain("24h"))); diff != "" {
					t.Error(diff)
				}
				_, _, err = service.Submit(trusted.Context(t), spool.Submission{Unit: "u"})
				if refused := strings.Contains(c.directory, "refused"); refused != fault.Is(err, fault.Forbidden) || !refused && err != nil {
					t.Errorf("a run: %v", err)
				}
			})
			t.Run("of an upload", func(t *testing.T) {
				t.Parallel()
				service, _ := policed(t, c.file)
				u, _, err := service.Units.Put(trusted.Context(t), "u", uploadOf(t, policedFiles(c.agent)))
				if c.upload == "" && strings.Contains(c.directory, "refused") || strings.Contains(c.upload, "refused") {
					public := fault.Public(err)
					if !fault.Is(err, fault.Forbidden) || c.upload != "" && !strings.HasSuffix(c.upload, public.Msg+" | "+public.Hint) {
						t.Errorf("got %v, %s", err, public.Hint)
					}
					if list, err := service.Units.List(trusted.Context(t)); err != nil || len(list) > 0 {
						t.Errorf("it is there: %v, %v", list, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.upload, told(u, plain("1h"))); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
