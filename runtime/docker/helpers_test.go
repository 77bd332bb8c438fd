package docker_test

import (
	"archive/tar"
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

func tarOf(name, text string) func(io.Writer) error {
	return func(w io.Writer) error {
		archive := tar.NewWriter(w)
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, text); err != nil {
			return err
		}
		return archive.Close()
	}
}

// BenchmarkCalls times every call of a run by itself and reports the medians, with
// the engine's networking and without.
func BenchmarkCalls(b *testing.B) {
	b.Run("network none", func(b *testing.B) { benchmarkCalls(b, sandbox("exit 0")) })
	b.Run("network none and own hosts file", func(b *testing.B) {
		spec := sandbox("exit 0")
		spec.Mounts = ownHosts(b)
		benchmarkCalls(b, spec)
	})
}

func benchmarkCalls(b *testing.B, spec runtime.ContainerSpec) {
	engine := localEngine(b)
	ctx := context.Background()
	times := map[string][]time.Duration{}
	timed := func(name string, call func() error) {
		begun := time.Now()
		if err := call(); err != nil {
			b.Fatal(name, err)
		}
		times[name] = append(times[name], time.Since(begun))
	}
	for b.Loop() {
		var id string
		whole := time.Now()
		timed("create", func() (err error) { id, err = engine.Create(ctx, spec); return err })
		timed("attach", func() error {
			streams, err := engine.Attach(ctx, id)
			if err == nil {
				b.Cleanup(func() { streams.Close() })
				go io.Copy(io.Discard, streams.Stderr)
				go io.Copy(io.Discard, streams.Stdout)
			}
			return err
		})
		var wait func() error
		timed("subscribe", func() error {
			exits, err := engine.NextExit(ctx, id)
			wait = func() error { return (<-exits).Err }
			return err
		})
		timed("start", func() error { return engine.Start(ctx, id) })
		timed("exit", func() error { return wait() })
		timed("inspect", func() error { _, err := engine.Inspect(ctx, id); return err })
		timed("remove", func() error { return engine.Remove(ctx, id) })
		times["whole"] = append(times["whole"], time.Since(whole))
	}
	for name, all := range times {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-ms")
	}
}
