package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/cmd/aod/au"
	"github.com/agent-on-demand/aod/internal/checklist"
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
func checked(t *testing.T, args ...string) (code int, report au.Report) {
	t.Helper()
	code, stdout, stderr := command(t, t.Context(), append([]string{"au", "check", "--quiet", "--json", "--data", t.TempDir()}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("code %d, %v: %s%s", code, err, stdout, stderr)
	}
	return code, report
}

func idsOf(r au.Report, m check.Verdict) []string {
	ids := []string{}
	for _, result := range r.Checks {
		if result.Verdict == m {
			ids = append(ids, result.ID)
		}
	}
	return ids
}

// uncounted are checks of what nobody sees from outside.
var uncounted = []string{}

func TestAGoodAgenticUnitBreaksNoRule(t *testing.T) {
	dockertest.Require(t)
	t.Parallel()
	dir := unitOf(t, "au-good")
	code, report := checked(t, dir)
	if diff := cmp.Diff(uncounted, idsOf(report, check.NotApplicable)); diff != "" || code != 0 || report.Checks.Count(check.Pass) != len(check.Checks)-len(uncounted) {
		t.Errorf("code %d, %s\n%+v", code, diff, report)
	}
}

// usualBreaker is the only one of the short form: the rules of the others are broken by variants.
const usualBreaker = "au-careless"

// breakers are units of testdata, and all that has to be found of them.
var breakers = []struct {
	unit  string
	waits bool // with its sample
	fails []string
}{
	{"au-careless", false, []string{
		"stdout-json-only", "stderr-only-errors", "exit-codes",
		"no-model-download", "path-traversal", "secrets-not-echoed", "no-network", "no-files-written",
		"error-messages", "exit-corrupt-input", "exit-missing-model", "out-of-memory",
		"readme", "capabilities", "config-documented", "license", "unit-tests", "integration-tests", "deterministic",
	}},
	{"au-trusting", false, []string{
		"exit-codes", "path-traversal", "out-of-memory",
		"readme", "license", "unit-tests", "integration-tests",
	}},
	{"au-stubborn", true, []string{
		"describe", "describe-schema", "readme", "license", "unit-tests", "integration-tests", "in-time",
	}},
	{"au-deaf", true, []string{
		"describe", "exit-codes", "readme", "license", "unit-tests", "integration-tests",
	}},
}

func TestRuleBreakersAreFoundOut(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	for _, c := range breakers {
		if c.unit != usualBreaker && number(t, "AOD_VARIANTS", 0) == 0 {
			continue
		}
		t.Run(c.unit, func(t *testing.T) {
			t.Parallel()
			dir, sample := unitOf(t, c.unit), filepath.Join(t.TempDir(), "wait")
			write(t, "wait\n", sample)
			args := []string{dir}
			if c.waits {
				args = append(args, "--sample", sample, "--timeout", "4s")
			}
			code, report := checked(t, args...)
			if c.waits && !cmp.Equal(c.fails, idsOf(report, check.Fail)) {
				// On a busy machine even what doesn't wait may take so long.
				code, report = checked(t, append(args, "--timeout", "1m")...)
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
	for _, table := range []map[string][]string{variants, sealedVariants} {
		for _, ids := range table {
			for _, id := range ids {
				broken[id] = true
			}
		}
	}
	for _, c := range check.Checks {
		if !broken[c.ID] && c.ID != "memory-bound" { // the kernel kills what takes more
			t.Errorf("no unit of testdata breaks %s", c.ID)
		}
	}
}

func TestAReportOfAUnitIsJSON(t *testing.T) {
	raw, err := json.Marshal(au.Report{Unit: "x", Checks: checklist.Results{{ID: "describe", Title: "T", Section: "4.1", Verdict: check.Fail, Why: "because"}}})
	if want := `{"unit":"x","checks":[{"id":"describe","title":"T","section":"4.1","verdict":"fail","why":"because"}]}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v\nwant %s", raw, err, want)
	}
}
