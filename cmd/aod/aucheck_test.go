package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
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

func idsOf(r auReport, m au.Mark) []string {
	ids := []string{}
	for _, result := range r.Results {
		if result.Mark == m {
			ids = append(ids, result.ID)
		}
	}
	return ids
}

func whyOf(r auReport, id string) string {
	for _, result := range r.Results {
		if result.ID == id {
			return result.Why
		}
	}
	return ""
}

// uncounted are checks of what nobody sees from outside.
var uncounted = []string{}

func TestAGoodAgenticUnitBreaksNoRule(t *testing.T) {
	dockertest.Require(t)
	dir := unitOf(t, "au-good")
	alone(t)
	code, report := checked(t, dir)
	if diff := cmp.Diff(uncounted, idsOf(report, au.NotApplicable)); diff != "" || code != 0 || report.Count(au.Pass) != len(au.Checks)-len(uncounted) {
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
			if diff := cmp.Diff(c.fails, idsOf(report, au.Fail)); diff != "" || code != 1 {
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
	for _, c := range au.Checks {
		if !broken[c.ID] && c.ID != "no-leaks" {
			t.Errorf("no unit of testdata breaks %s", c.ID)
		}
	}
}

// imagine checks a unit without starting it.
func imagine(sample []byte, model string, args ...string) *auCheck {
	return &auCheck{
		args: args, model: model, sample: sample,
		seen: map[au.Scenario]orchestrator.Observed{}, untried: map[au.Scenario]string{},
	}
}

func cardOf(t *testing.T, media, config string) *au.Card {
	t.Helper()
	card, err := au.ParseCard([]byte(`{"name": "x", "version": "1.0.0", "description": "x", "capabilities": ["x"],
		"inputs": [{"media_type": "application/x-unheard", "description": "x"}, {"media_type": "` + media + `", "description": "x"}],
		"outputs": [{"media_type": "application/json", "description": "x"}], "config": {` + config + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return card
}

func TestEachSampleIsWhatItsMediaTypeSays(t *testing.T) {
	for media := range samples {
		card := cardOf(t, strings.ToUpper(media)+"; a=b", "")
		sample := sampleFor(card)
		if kind := au.Sniff(sample); len(sample) == 0 || !card.Accepts(kind) {
			t.Errorf("%s: %d bytes of %s", media, len(sample), kind)
		}
	}
	if kind := au.Sniff(noFormat()); kind != "application/octet-stream" {
		t.Errorf("what has no format is %s", kind)
	}
	if sampleFor(cardOf(t, "audio/wav", "")) != nil || sampleFor(nil) != nil {
		t.Error("a sample was made of nothing")
	}
}

func TestTheHugeInputIsTheSampleOverAndOver(t *testing.T) {
	raw, err := io.ReadAll(io.LimitReader(imagine([]byte("abc"), "").huge(), 10_000))
	if err != nil || string(raw) != strings.Repeat("abc", 3334)[:10_000] {
		t.Errorf("%v, %.20q", err, raw)
	}
	if n, err := io.Copy(io.Discard, imagine(nil, "").huge()); err != nil || n != hugeBytes {
		t.Errorf("%v, %d bytes", err, n)
	}
}

func TestWhatAUnitIsStartedWith(t *testing.T) {
	const model = `"model-path": {"type": "string", "description": "x", "default": null}`
	const lang = `"lang": {"type": "string", "description": "x", "default": null}`
	for _, c := range []struct {
		name    string
		check   *auCheck
		config  string
		want    []string
		problem string
		refused bool
	}{
		{"nothing", imagine(nil, ""), "", nil, "", false},
		{"what follows --", imagine(nil, "", "--lang=deu"), lang, []string{"--lang", "deu"}, "", false},
		{"a model", imagine(nil, "/home/m.gguf"), model, []string{"--model-path", "/models/m.gguf"}, "", false},
		{"a model is missing", imagine(nil, ""), model, nil, "--model-path PATH", false},
		{"a model of the image's", imagine(nil, "", "--model-path", "/opt/m"), model, []string{"--model-path", "/opt/m"}, "", false},
		{"an argument is missing", imagine(nil, ""), lang, nil, "after --", false},
		{"an argument is wrong", imagine(nil, "", "--n", "x"), lang, nil, "", true},
		{"a model that it doesn't take", imagine(nil, "/home/m.gguf"), "", nil, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check.card = cardOf(t, "text/plain", c.config)
			got, problem, err := c.check.command()
			if diff := cmp.Diff(c.want, got.Args); diff != "" || fault.Is(err, fault.Input) != c.refused || (c.problem == "") != (problem == "") {
				t.Errorf("%s %q, %v", diff, problem, err)
			}
			contains(t, problem, c.problem)
		})
	}
}

func TestLittleMemoryIsEnoughForTheSample(t *testing.T) {
	peak := int64(10 << 20)
	good := orchestrator.Observed{Run: au.Run{PeakMemory: &peak}, MemoryLimit: 64 << 20}
	for _, c := range []struct {
		name  string
		spoil func(*orchestrator.Observed)
		want  int64
	}{
		{"with some room", func(*orchestrator.Observed) {}, peak + headroom},
		{"unless the sample was refused", func(o *orchestrator.Observed) { o.ExitCode = 2 }, 0},
		{"or took too long", func(o *orchestrator.Observed) { o.TimedOut = true }, 0},
		{"or nobody knows what it took", func(o *orchestrator.Observed) { o.PeakMemory = nil }, 0},
		{"or that is nearly all it has", func(o *orchestrator.Observed) { o.MemoryLimit = peak + headroom }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := good
			c.spoil(&seen)
			if got, problem := littleMemory(seen); got != c.want || (got == 0) != (problem != "") {
				t.Errorf("%d, %q", got, problem)
			}
		})
	}
}

func TestAPathThatClimbsTakesThePlaceOfTheMissingModel(t *testing.T) {
	got := climbing(au.Command{Args: []string{"--a=" + missingModel, "b"}, Env: []string{"MODEL_PATH=" + missingModel}})
	want := au.Command{Args: []string{"--a=" + climbingModel, "b"}, Env: []string{"MODEL_PATH=" + climbingModel}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAReportSaysWhyAScenarioWasNotTried(t *testing.T) {
	check := imagine(nil, "")
	check.seen[au.ScenarioDescribe] = orchestrator.Observed{Run: au.Run{Stdout: []byte(`{}`)}}
	check.leave("do this", au.ScenarioSample)
	report := auReport{Unit: "x", Report: check.report(nil)}
	if why := whyOf(report, "in-time"); why != "sample was not tried: do this" {
		t.Errorf("%q", why)
	}
	if why := whyOf(report, "exit-empty-input"); why != "empty was not tried" {
		t.Errorf("%q", why)
	}
}
