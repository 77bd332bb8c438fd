package check

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/internal/checklist"
)

// imagine checks a unit without starting it.
func imagine(sample []byte, model string, args ...string) *examination {
	return newExamination(nil, Options{Args: args, ModelPath: model, Sample: sample})
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
	for _, sample := range [][]byte{nil, {}, bytes.Repeat([]byte("x"), 2*readBytes)} {
		if n, err := io.Copy(io.Discard, imagine(sample, "").huge()); err != nil || n != hugeBytes {
			t.Errorf("with a sample of %d bytes: %v, %d bytes", len(sample), err, n)
		}
	}
}

func TestWhatAUnitIsStartedWith(t *testing.T) {
	const model = `"model-path": {"type": "string", "description": "x", "default": null}`
	const lang = `"lang": {"type": "string", "description": "x", "default": null}`
	for _, c := range []struct {
		name    string
		check   *examination
		config  string
		want    []string
		problem string
		refused bool
	}{
		{"nothing", imagine(nil, ""), "", nil, "", false},
		{"what follows --", imagine(nil, "", "--lang=deu"), lang, []string{"--lang", "deu"}, "", false},
		{"a model", imagine(nil, "/models/m.gguf"), model, []string{"--model-path", "/models/m.gguf"}, "", false},
		{"a model is missing", imagine(nil, ""), model, nil, "--model-path PATH", false},
		{"a model of the image's", imagine(nil, "", "--model-path", "/opt/m"), model, []string{"--model-path", "/opt/m"}, "", false},
		{"an argument is missing", imagine(nil, ""), lang, nil, "after --", false},
		{"an argument is wrong", imagine(nil, "", "--n", "x"), lang, nil, "", true},
		{"a model that it doesn't take", imagine(nil, "/models/m.gguf"), "", nil, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check.card = cardOf(t, "text/plain", c.config)
			got, problem, err := c.check.command()
			if diff := cmp.Diff(c.want, got.Args); diff != "" || fault.Is(err, fault.Input) != c.refused || (c.problem == "") != (problem == "") {
				t.Errorf("%s %q, %v", diff, problem, err)
			}
			if !strings.Contains(problem, c.problem) {
				t.Errorf("%q lacks %q", problem, c.problem)
			}
		})
	}
}

func TestLittleMemoryIsEnoughForTheSample(t *testing.T) {
	peak := int64(10 << 20)
	good := Observed{Run: Run{PeakMemory: &peak}, MemoryLimit: 64 << 20}
	for _, c := range []struct {
		name  string
		spoil func(*Observed)
		want  int64
	}{
		{"with some room", func(*Observed) {}, peak + headroom},
		{"unless the sample was refused", func(o *Observed) { o.ExitCode = 2 }, 0},
		{"or took too long", func(o *Observed) { o.TimedOut = true }, 0},
		{"or nobody knows what it took", func(o *Observed) { o.PeakMemory = nil }, 0},
		{"or that is nearly all it has", func(o *Observed) { o.MemoryLimit = peak + headroom }, 0},
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
	e := imagine(nil, "")
	e.seen[ScenarioDescribe] = Observed{Run: Run{Stdout: []byte(`{}`)}}
	e.leave("do this", ScenarioSample)
	report := e.report()
	if got := why(report, "in-time"); got != "sample was not tried: do this" {
		t.Errorf("%q", got)
	}
	if got := why(report, "exit-empty-input"); got != "empty was not tried" {
		t.Errorf("%q", got)
	}
}

func why(r checklist.Results, id string) string {
	for _, result := range r {
		if result.ID == id {
			return result.Why
		}
	}
	return ""
}

// fakeUnit ends each trial as a unit that keeps every rule.
type fakeUnit struct{ tried []Trial }

func (u *fakeUnit) Start(_ context.Context, trial Trial) (Observed, error) {
	u.tried = append(u.tried, trial)
	if trial.Stdin != nil {
		if _, err := io.Copy(io.Discard, trial.Stdin); err != nil {
			return Observed{}, err
		}
	}
	return Observed{Run: good().Runs[trial.Scenario], MemoryLimit: 64 << 20}, nil
}

func TestAUnitIsStartedInEveryScenario(t *testing.T) {
	unit := &fakeUnit{}
	report, err := Unit(t.Context(), unit, Options{Name: "x", ModelPath: "/models/m", Timeout: cardTime * 2, Source: &Source{true, true, true, true}})
	if err != nil || report.Failed() || report.Count(Pass) != len(Checks) {
		t.Errorf("%v %+v", err, report)
	}
	var tried []Scenario
	for _, trial := range unit.tried {
		tried = append(tried, trial.Scenario)
		if want := map[bool]int64{true: 1000 + headroom}[trial.Scenario == ScenarioLittleMemory]; trial.MemoryBytes != want {
			t.Errorf("%s has %d bytes of memory", trial.Scenario, trial.MemoryBytes)
		}
	}
	slices.Sort(tried)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(good().Runs)), tried); diff != "" {
		t.Error(diff)
	}
}

func TestASampleThatTheCardDoesNotTakeIsRefused(t *testing.T) {
	unit := &fakeUnit{}
	_, err := Unit(t.Context(), unit, Options{Name: "x", Sample: []byte("text\n"), Timeout: cardTime})
	if !fault.Is(err, fault.Input) || len(unit.tried) != 1 {
		t.Errorf("%v after %d starts", err, len(unit.tried))
	}
}
