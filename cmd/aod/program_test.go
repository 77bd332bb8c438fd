package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-on-demand/aod/programtest"
)

// shipped is the program as users have it, for what is measured without the race detector.
var shipped programtest.Program

// TestMain lets the scripts run this very program as "aod".
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"aod": func() { os.Exit(mainCode(testKinds()...)) }})
}

// tests remove in the end what they share.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer shipped.Remove()
	return m.M.Run()
}
