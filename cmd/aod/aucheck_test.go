package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// unitOf copies a unit of testdata to where no repository is around it.
func unitOf(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checked is what `aod au check --json` says of a unit.
func checked(t *testing.T, args ...string) (code int, report auReport) {
	t.Helper()
	code, stdout, stderr := command(t, t.Context(), append([]string{"au", "check", "--quiet", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("code %d, %v: %s%s", code, err, stdout, stderr)
	}
	return code, report
}

func idsOf(r auReport, m check.Mark) []string {
	ids := []string{}
	for _, result := range r.Results {
		if result.Mark == m {
			ids = append(ids, result.ID)
		}
	}
	return ids
}

// uncounted are checks of what nobody sees from outside.
var uncounted = []string{}

func TestAGoodAgenticUnitBreaksNoRule(t *testing.T) {
	dockertest.Require(t)
	dir := unitOf(t, "au-good")
	alone(t)
	code, report := checked(t, dir)
	if diff := cmp.Diff(uncounted, idsOf(report, check.NotApplicable)); diff != "" || code != 0 || report.Count(check.Pass) != len(check.Checks)-len(uncounted) {
		t.Errorf("code %d, %s\n%+v", code, diff, report)
	}
}

// breakers are units of testdata, and all that has to be found of them.
var breakers = []struct {
	unit  string
	flags []string
	fails []string
}{
	{"au-careless", nil, []string{
		"stdout-json-only", "stderr-only-errors", "exit-codes",
		"no-model-download", "path-traversal", "exit-huge-input", "secrets-not-echoed", "no-network", "no-files-written",
		"error-messages", "exit-empty-input", "exit-corrupt-input", "exit-missing-model", "out-of-memory",
		"readme", "capabilities", "config-documented", "license", "unit-tests", "integration-tests", "deterministic", "memory-bound",
	}},
	{"au-trusting", nil, []string{
		"path-traversal", "error-messages", "out-of-memory",
		"readme", "license", "unit-tests", "integration-tests",
	}},
	{"au-stubborn", []string{"--timeout", "4s", "--sample", "wait"}, []string{
		"describe", "describe-schema", "stdin-bytes", "exit-codes",
		"readme", "license", "unit-tests", "integration-tests", "deterministic", "in-time",
	}},
	{"au-deaf", []string{"--timeout", "4s", "--sample", "wait"}, []string{
		"describe", "describe-schema",
		"readme", "license", "unit-tests", "integration-tests",
	}},
}

func TestRuleBreakersAreFoundOut(t *testing.T) {
	dockertest.Require(t)
	for _, c := range breakers {
		t.Run(strings.Join(append([]string{c.unit}, c.flags...), " "), func(t *testing.T) {
			dir := unitOf(t, c.unit)
			alone(t)
			if err := os.WriteFile("wait", []byte("wait\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			code, report := checked(t, append([]string{dir}, c.flags...)...)
			if len(c.flags) > 0 && !cmp.Equal(c.fails, idsOf(report, check.Fail)) {
				// On a busy machine even what doesn't wait may take so long.
				code, report = checked(t, append([]string{dir, "--timeout", "1m"}, c.flags[2:]...)...)
			}
			if diff := cmp.Diff(c.fails, idsOf(report, check.Fail)); diff != "" || code != 1 {
				t.Errorf("code %d, %s\n%+v", code, diff, report)
			}
		})
	}
}

func TestEveryCheckHasItsBreaker(t *testing.T) {
	broken := map[string]bool{}
	for _, c := range breakers {
		for _, id := range c.fails {
			broken[id] = true
		}
	}
	for _, c := range check.Checks {
		if !broken[c.ID] && c.ID != "no-leaks" {
			t.Errorf("no unit of testdata breaks %s", c.ID)
		}
	}
}

func TestAProgramAloneHasNoSource(t *testing.T) {
	_, data := alone(t)
	a := &app{data: data}
	if got := a.sourceOf(&capsule.Capsule{Dir: filepath.Join(data, "au", "0123")}); got != nil {
		t.Errorf("%+v", got)
	}
}
