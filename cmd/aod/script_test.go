package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

var update = flag.Bool("update", false, "write what the scripts see into their golden files")

// TestScripts runs the command line as a user does. Scripts in testdata need no
// engine; those in testdata/docker do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: setup, Cmds: commands, UpdateScripts: *update})
}

func TestDockerScripts(t *testing.T) {
	engine := dockertest.Require(t)
	t.Cleanup(func() {
		left := scriptedContainers(t, engine) // those of another run of these tests are gone soon
		testkit.Eventually(t, fmt.Sprintf("the containers %v are gone", left), func() bool {
			now := scriptedContainers(t, engine)
			return !slices.ContainsFunc(left, func(id string) bool { return slices.Contains(now, id) })
		})
	})
	testscript.Run(t, testscript.Params{Dir: "testdata/docker", Setup: setup, Cmds: commands, UpdateScripts: *update})
}

func scriptedContainers(t *testing.T, engine *docker.Engine) (ids []string) {
	t.Helper()
	containers, err := engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelUnit: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		ids = append(ids, c.ID)
	}
	return ids
}

// setup gives each script a data directory of its own and the engine that the tests
// have.
func setup(env *testscript.Env) error {
	env.Setenv("AOD_DATA", filepath.Join(env.WorkDir, "data"))
	env.Setenv("HOME", env.WorkDir)
	env.Setenv(raceOptions, quickEnd)
	for _, name := range []string{"DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"} {
		env.Setenv(name, os.Getenv(name))
	}
	return nil
}

// commands are what the scripts have beside testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"agent":    agent,
	"code":     code,
	"awaitlog": awaitLog,
	"empty":    empty,
}

// code runs a program and wants an exit code: code 124 aod run …
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// awaitLog waits until a file has a text in it: awaitlog FILE TEXT
func awaitLog(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(testkit.Patience)
	for time.Now().Before(deadline) {
		raw, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && bytes.Contains(raw, []byte(args[1])) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("%s never said %q", args[0], args[1])
}

// empty wants a directory that is there and has nothing in it, or isn't there.
func empty(ts *testscript.TestScript, _ bool, args []string) {
	for _, dir := range args {
		entries, err := os.ReadDir(ts.MkAbs(dir))
		if err != nil && !os.IsNotExist(err) {
			ts.Fatalf("%v", err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if len(names) > 0 {
			ts.Fatalf("%s is not empty: %s", dir, strings.Join(names, " "))
		}
	}
}
