package container

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// socket is where a program finds the capsule API.
func socket(dir string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(dir, "aod.sock"))
		},
	}}
}

func TestTheCapsuleAPILastsAsLongAsItsRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var whileItRuns int
	b.runs(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		if answer := do(ctx, socket(mounted(spec, "/run/aod")), http.MethodGet, "/invocation", ""); answer != nil {
			whileItRuns = answer.StatusCode
		}
		return succeed(ctx, spec, stdout, stderr)
	})
	x := b.execution()
	if got, err := x.Attempt(t.Context()); err != nil || got.Outcome != api.Success || whileItRuns != http.StatusOK || !x.attempt.api.asked() {
		t.Errorf("%+v, %v: it was answered %d", got, err, whileItRuns)
	}
	if answer := do(t.Context(), socket(filepath.Join(x.run.AttemptDir(), "aod")), http.MethodGet, "/health", ""); answer != nil {
		t.Errorf("after its end it is answered %d", answer.StatusCode)
	}
	b.ends(x)
}

// A program finds its API again where it was, whatever process serves it.
func TestTheAPIOfAResumedRunIsWhereItWas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, proceed := b.leftUntil(succeed)
	next := b.resumed(x)
	done := make(chan error, 1)
	go func() {
		_, err := next.Resume(t.Context())
		done <- err
	}()
	testkit.Eventually(t, "the API is served at the same place again", func() bool {
		answer := do(t.Context(), socket(filepath.Join(x.run.AttemptDir(), "aod")), http.MethodGet, "/run", "")
		return answer != nil && answer.StatusCode == http.StatusOK
	})
	proceed()
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.ends(next)
}
