package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
)

// shipped is the program as users have it, for what is measured without the race detector.
var shipped programtest.Program

// TestMain lets the scripts run this very program as "aod".
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"aod": func() { os.Exit(mainCode()) }})
}

// The race detector sleeps for a second at the end of each program, unless it is told not to.
const (
	raceOptions = "GORACE"
	quickEnd    = "atexit_sleep_ms=0"
)

// tests remove in the end what they share.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer shipped.Remove()
	if err := os.Setenv(raceOptions, quickEnd); err != nil {
		panic(err)
	}
	return m.M.Run()
}
