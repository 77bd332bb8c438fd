// Package dockertest gives tests the real engine.
//
// It must not know capsules.
//
// Its Go API may change with every release: see docs/stability.md.
package dockertest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/runtime/docker"
)

// Image is a small image with a shell that tests on the real engine start from.
const Image = "debian:trixie-slim"

// Require returns the engine that the environment names. Where none answers, or it has
// no Image and can't get it, the test is skipped with the reason, or fails when
// AOD_TEST_DOCKER=require. The engine is closed at the end of the test.
func Require(t testing.TB) *docker.Engine {
	t.Helper()
	engine, err := docker.New(docker.Options{})
	if err != nil {
		giveUp(t, err)
	}
	t.Cleanup(func() { engine.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := engine.Probe(ctx); err != nil {
		giveUp(t, err)
	}
	if _, err := engine.Image(ctx, Image); err == nil {
		return engine
	}
	if err := engine.Pull(ctx, Image); err != nil {
		giveUp(t, err)
	}
	return engine
}

func giveUp(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("AOD_TEST_DOCKER") == "require" {
		t.Fatalf("AOD_TEST_DOCKER=require, but: %v", err)
	}
	t.Skipf("no Docker engine to test with: %v", err)
}
