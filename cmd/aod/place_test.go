package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// asking are the commands that ask the server that is named, or say themselves why they can't.
var asking = strings.Fields(`agent/attach agent/run agent/sessions agent/sessions/close agent/show answer apply approve cancel chat config/reload describe diff flow/export flow/show flow/state
	audit flow/stats flow/steps logs usage mcp mcp/call mcp/config mcp/run models pool prune ps questions reject rerun rm run runs say schedule/add schedule/apply schedule/history
	schedule/list schedule/next schedule/pause schedule/resume schedule/rm schedule/run schedule/show ui units units/disable units/enable units/rm units/rollback units/versions webhook/add webhook/ls webhook/rm webhook/rotate webhook/test worker/add worker/drain worker/ls worker/rm worker/undrain whoami login logout`)

// alsoCommands do something themselves, beside the commands below them.
var alsoCommands = []string{"agent sessions", "build", "config", "mcp", "units"}

func TestEachCommandHasAPlace(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := pathOf(cmd)
		known[path] = true
		isGroup := cmd.HasSubCommands() && !slices.Contains(alsoCommands, path)
		if !cmd.HasParent() || isGroup {
			return
		}
		if asks := slices.Contains(asking, strings.ReplaceAll(path, " ", "/")); asks != (placeOf(cmd) == anywhere) {
			t.Errorf("aod %s: does it ask the server? Then it is in the list of this test, else among the places", path)
		}
	}
	walk(newApp(nil, ui.NewOutput(os.Stdout), ui.NewOutput(os.Stderr)).rootCommand())
	for path := range places {
		if !known[path] {
			t.Errorf("there is no command aod %s", path)
		}
	}
}

func TestWhatIsAskedOfAServerElsewhereIsNotDoneHere(t *testing.T) {
	_, data := alone(t)
	s := newFakeServer(t)
	for _, line := range []string{
		"secret set KEY", "secret ls", "secret rm KEY", "config", "config --json", "backup file",
		"restore file", "build ./unit", "build base", "test ./unit", "shell ./unit", "au describe ./unit", "au run ./unit", "au check ./unit", "agent check ./unit",
	} {
		for _, byFlag := range []bool{true, false} {
			args := strings.Fields(line)
			if t.Setenv("AOD_SERVER", s.URL); byFlag {
				t.Setenv("AOD_SERVER", "")
				args = append(args, "--server", s.URL)
			}
			code, stdout, stderr := command(t, t.Context(), args...)
			if code != 2 || stdout != "" || !strings.Contains(stderr, "works on this machine") || !strings.Contains(stderr, "--data names its data directory") {
				t.Errorf("%s, by flag %v: code %d, %q, %q", line, byFlag, code, stdout, stderr)
			}
		}
	}
	if left, err := os.ReadDir(data); err == nil {
		t.Errorf("something was written: %v", left)
	}
	if requests, _ := s.seen(); len(requests) > 0 {
		t.Errorf("the server was asked: %v", requests)
	}
}

func TestWhatIsAskedOfTheServerHereIsDoneHere(t *testing.T) {
	_, data := alone(t)
	s := newFakeServer(t)
	home := filepath.Join(data, "server")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := safefs.Lock(filepath.Join(home, layout.Lock)) // as its server has it
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	t.Setenv("AOD_SERVER", s.URL)
	for name, c := range map[string]struct {
		address string // of the server of the data directory
		args    []string
		code    int
	}{
		"another server's":          {"http://127.0.0.1:1", nil, 2},
		"its own":                   {s.URL, nil, 0},
		"its own by another name":   {strings.Replace(s.URL, "127.0.0.1", "localhost", 1), []string{"--server", s.URL}, 0},
		"a directory that is named": {"http://127.0.0.1:1", []string{"--data", data}, 0},
		"a directory and a server":  {"http://127.0.0.1:1", []string{"--data", data, "--server", s.URL}, 2},
	} {
		if err := writeAddress(home, c.address); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := command(t, t.Context(), append([]string{"config"}, c.args...)...); code != c.code {
			t.Errorf("%s: code %d, want %d: %s", name, code, c.code, stderr)
		}
	}
	for line, want := range map[string]int{"version": 0, "version --server " + s.URL: 2, "flow schema": 0, "validate ./none --server " + s.URL: 2, "mcp --units . --server " + s.URL: 2} {
		_ = os.Remove(filepath.Join(home, "address"))
		if code, _, stderr := command(t, t.Context(), strings.Fields(line)...); code != want {
			t.Errorf("%s: code %d, want %d: %s", line, code, want, stderr)
		}
	}
}
