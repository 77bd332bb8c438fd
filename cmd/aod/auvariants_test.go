package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/au"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/checklist"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// variants of a sound unit break one rule each: by the names that testdata/au-variants knows,
// and the checks that have to find it. Where two are named the one breach breaks both rules.
var variants = map[string][]string{
	"describe-fails":          {"describe"},
	"describe-reads-stdin":    {"describe"},
	"describe-chats":          {"describe"},
	"describe-prints-twice":   {"describe"},
	"describe-prints-nothing": {"describe"},
	"describe-crashes":        {"describe"},
	"describe-differs":        {"describe"},

	"card-version-is-short":        {"describe-schema"},
	"card-has-no-version":          {"describe-schema"},
	"card-version-is-a-number":     {"describe-schema"},
	"card-name-has-a-space":        {"describe-schema"},
	"card-has-no-inputs":           {"describe-schema"},
	"card-has-no-outputs":          {"describe-schema"},
	"card-has-no-description":      {"describe-schema"},
	"card-has-no-name":             {"describe-schema"},
	"card-media-type-is-a-word":    {"describe-schema"},
	"card-input-is-not-described":  {"describe-schema"},
	"card-has-a-float":             {"describe-schema"},
	"card-has-a-number":            {"describe-schema"},
	"card-flag-has-dashes":         {"describe-schema"},
	"card-flag-is-not-described":   {"describe-schema"},
	"card-default-is-of-no-type":   {"describe-schema"},
	"card-names-the-code-of-error": {"describe-schema"},
	"card-lists-nothing":           {"describe-schema"},
	"card-can-do-nothing":          {"capabilities"},
	"card-describes-with-a-space":  {"config-documented"},

	"reads-a-little":     {"stdin-bytes"},
	"log-line-before":    {"stdout-json-only"},
	"log-line-after":     {"stdout-json-only"},
	"two-results":        {"stdout-json-only"},
	"bare-value":         {"stdout-json-only"},
	"no-utf8":            {"stdout-json-only"},
	"no-number":          {"stdout-json-only"},
	"half-a-result":      {"stdout-json-only"},
	"field-twice":        {"stdout-json-only"},
	"success-in-silence": {"stdout-json-only"},
	"errors-on-stdout":   {"stderr-only-errors"},

	"refuses-a-good-input":    {"exit-codes"},
	"hangs":                   {"in-time"},
	"wrong-number-is-general": {"exit-codes"},
	"unknown-flag-is-general": {"exit-codes"},
	"unknown-flag-is-taken":   {"exit-codes"},
	"card-prints-text":        {"describe-schema"},
	"damaged-crashes":         {"exit-codes"},
	"damaged-needs-a-program": {"exit-codes"},

	"climbs":                     {"path-traversal"},
	"climbing-is-general":        {"path-traversal"},
	"climbing-crashes":           {"path-traversal"},
	"no-model-is-general":        {"exit-missing-model"},
	"no-model-is-a-domain-error": {"exit-missing-model"},
	"no-model-in-silence":        {"error-messages"},

	"empty-is-good":          {"exit-empty-input"},
	"empty-is-general":       {"exit-empty-input"},
	"empty-in-silence":       {"error-messages"},
	"empty-crashes":          {"exit-empty-input"},
	"corrupt-is-good":        {"exit-corrupt-input"},
	"corrupt-is-general":     {"exit-corrupt-input"},
	"corrupt-in-silence":     {"error-messages"},
	"corrupt-crashes":        {"exit-corrupt-input"},
	"corrupt-is-a-traceback": {"error-messages"},
	"huge-hangs":             {"exit-huge-input"},
	"huge-in-silence":        {"error-messages"},
	"huge-crashes":           {"exit-huge-input"},
	"huge-says-nothing":      {"error-messages"},

	"variable-is-echoed":       {"secrets-not-echoed"},
	"prompt-is-echoed":         {"secrets-not-echoed"},
	"lang-is-echoed":           {"secrets-not-echoed"},
	"corrupt-is-echoed":        {"secrets-not-echoed"},
	"corrupt-is-echoed-in-hex": {"secrets-not-echoed"},
	"damaged-is-echoed":        {"secrets-not-echoed"},
	"wrong-number-is-echoed":   {"secrets-not-echoed"},
	"unknown-flag-is-echoed":   {"secrets-not-echoed"},

	"random":       {"deterministic"},
	"random-order": {"deterministic"},
}

// sealedVariants break rules that only a sandbox can watch. Each takes up to fifty of them, so that the long
// form alone has them: make long
var sealedVariants = map[string][]string{
	"fetches-the-model": {"no-model-download"},
	"leaves-a-file":     {"no-files-written"},
	"leaves-a-process":  {"no-leaks"},
	"eats-all-memory":   {"out-of-memory"},

	"goes-on-without-the-model": {"exit-missing-model"},
	"connects":                  {"no-network"},
	"binds":                     {"no-network"},
	"asks-for-a-name":           {"no-network"},
	"listens":                   {"no-network"},
	"shares-memory":             {"no-files-written"},
	"tries-to-write":            {"no-files-written"},
	"removes-its-file":          {"no-files-written"},
	"tries-to-make-a-directory": {"no-files-written"},
	"tries-to-remove":           {"no-files-written"},
	"keeps-it-all":              {"out-of-memory"},
}

// soundVariants break no rule; those of sealedSound show that only in a sandbox.
var (
	soundVariants = []string{"", "takes-anything", "warns", "names-its-codes", "chats", "list", "other-order", "no-parameters", "streams"}
	sealedSound   = []string{"", "writes-to-no-file", "streams"}
)

// variantUnit builds the unit of testdata, and returns the directory with its source.
func variantUnit(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "unit"), "./testdata/au-variants")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range map[string]string{
		"Dockerfile": "FROM scratch\nCOPY unit /unit\nENTRYPOINT [\"/unit\"]\n", "agent.yaml": "kind: au\nname: au-variants\nlimits:\n  memory: 96MiB\n",
		"README.md": "```sh\nau-variants < text\n```\n", "LICENSE": "MIT\n", "unit_test.sh": "true\n", "tests/sample.txt": "a text\n", ".dockerignore": "*\n!unit\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// hangTime is the time of variants that hang.
const hangTime = 3 * time.Second

// variantOptions are those of `aod au check` with the variant's time.
func variantOptions(dir, name string) check.Options {
	opts := check.Options{Name: "au-variants", Sample: []byte("The quick brown fox jumps over the lazy dog.\n"), Timeout: time.Minute, Source: check.SourceOf(dir)}
	if slices.Contains([]string{"describe-reads-stdin", "hangs", "huge-hangs"}, name) {
		opts.Timeout = hangTime
	}
	return opts
}

func judgeVariant(t *testing.T, starter check.Starter, opts check.Options, want []string) checklist.Results {
	t.Helper()
	want = append([]string{}, want...)
	report, err := check.Unit(t.Context(), starter, opts)
	if opts.Timeout == hangTime && !cmp.Equal(want, idsOf(au.Report{Checks: report}, check.Fail)) {
		opts.Timeout = time.Minute // on a busy machine even what doesn't hang may take so long
		report, err = check.Unit(t.Context(), starter, opts)
	}
	got := idsOf(au.Report{Checks: report}, check.Fail)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
		for _, r := range report {
			if r.Verdict == check.Fail {
				t.Logf("%s: %s", r.ID, r.Why)
			}
		}
	}
	return report
}

func TestEachVariantIsFoundByItsRule(t *testing.T) {
	dir := variantUnit(t)
	for name, want := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judgeVariant(t, process{dir, name}, variantOptions(dir, name), want)
		})
	}
	for _, name := range soundVariants {
		t.Run("sound: "+name, func(t *testing.T) {
			t.Parallel()
			judgeVariant(t, process{dir, name}, variantOptions(dir, name), nil)
		})
	}
	t.Run("one that can't start passes nothing", func(t *testing.T) {
		t.Parallel()
		report := judgeVariant(t, process{dir, "cannot-start"}, variantOptions(dir, ""), []string{"describe"})
		if n := report.Count(check.Pass); n > 0 {
			t.Errorf("%d passed", n)
		}
	})
}

func TestEachSourceThatLacksSomethingIsFoundByItsRule(t *testing.T) {
	whole := variantUnit(t)
	for _, c := range []struct{ file, text, rule string }{
		{"README.md", "", "readme"},
		{"README.md", "It counts.\n", "readme"},
		{"LICENSE", "", "license"},
		{"LICENSE", " \n", "license"},
		{"unit_test.sh", "", "unit-tests"},
		{"tests/sample.txt", "", "integration-tests"},
	} {
		// Not in parallel: a fork meanwhile would hold the copied program open, which is "text file busy" then.
		t.Run(c.rule+" "+c.text, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, c.file)
			if c.text == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			judgeVariant(t, process{dir, ""}, variantOptions(dir, ""), []string{c.rule})
		})
	}
}

func TestEachVariantIsFoundByItsRuleInSandboxes(t *testing.T) {
	onlyLong(t, "AOD_VARIANTS")
	dockertest.Require(t)
	dir := variantUnit(t)
	_, data := alone(t)
	a := newApp(nil, discard(), discard())
	a.env.Data, a.env.Quiet = data, true
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = cli.WithLocal(t.Context(), a.env, func(l *cli.Local) error {
		starter := au.Starter{Containers: l.Containers, Unit: unit.Of(c), View: progress.New(a.env.Err, c.Name, true)}
		t.Run("all", func(t *testing.T) {
			for name, want := range sealedVariants {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					judgeVariant(t, sealed{starter, name}, variantOptions(dir, name), want)
				})
			}
			for _, name := range sealedSound {
				t.Run("sound: "+name, func(t *testing.T) {
					t.Parallel()
					report := judgeVariant(t, sealed{starter, name}, variantOptions(dir, name), nil)
					if n := report.Count(check.NotApplicable); n > 0 {
						t.Errorf("%d were not seen: %+v", n, idsOf(au.Report{Checks: report}, check.NotApplicable))
					}
				})
			}
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func discard() *ui.Output { return &ui.Output{Writer: io.Discard} }

// sealed starts a variant in a sandbox.
type sealed struct {
	au.Starter
	variant string
}

func (s sealed) Start(ctx context.Context, trial check.Trial) (check.Observed, error) {
	trial.Env = append(slices.Clone(trial.Env), "VARIANT="+s.variant)
	return s.Starter.Start(ctx, trial)
}

// process starts a variant as a process of this machine: what only a sandbox counts stays
// uncounted.
type process struct{ dir, variant string }

func (p process) Start(ctx context.Context, trial check.Trial) (seen check.Observed, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.dir, "unit"), trial.Args...)
	cmd.Env = append(slices.Clone(trial.Env), "VARIANT="+p.variant)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stdin, end, err := stdinOf(trial)
	if err != nil {
		return seen, err
	}
	defer end()
	if stdin != nil {
		cmd.Stdin = stdin
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return seen, err
	}
	over := time.AfterFunc(trial.Timeout, cancel) // begins with the program: its start may take as long
	defer over.Stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return seen, err
	}
	seen.Run = check.Run{
		ExitCode: codeOf(cmd.ProcessState), TimedOut: ctx.Err() != nil, Duration: time.Since(began),
		Stdout: stdout.Bytes(), StderrTail: stderr.Bytes(), StderrBytes: int64(stderr.Len()),
	}
	if trial.Stdin != nil {
		taken, err := stdin.Seek(0, io.SeekCurrent)
		size, err2 := stdin.Seek(0, io.SeekEnd)
		seen.StdinTaken, seen.StdinBytes = &taken, size
		return seen, errors.Join(err, err2)
	}
	return seen, nil
}

// stdinOf is a file, so that its position tells what was read, or a pipe that stays open.
func stdinOf(trial check.Trial) (stdin *os.File, end func(), err error) {
	if trial.Open {
		r, w, err := os.Pipe()
		return r, func() { _ = r.Close(); _ = w.Close() }, err
	}
	if trial.Stdin == nil {
		return nil, func() {}, nil
	}
	file, err := os.CreateTemp("", "aod-variant-")
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = file.Close(); _ = os.Remove(file.Name()) }
	if _, err = io.Copy(file, trial.Stdin); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	return file, end, err
}

func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() { //nolint:misspell // the name is the standard library's
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

func TestTheTableHasSixtyVariantsAndEightSoundOnes(t *testing.T) {
	if n := len(variants) + len(sealedVariants); n < 60 || len(soundVariants) < 8 {
		t.Errorf("%d variants, %d sound ones", n, len(soundVariants))
	}
	found := map[string]bool{"memory-bound": true, "readme": true, "license": true, "unit-tests": true, "integration-tests": true}
	for _, table := range []map[string][]string{variants, sealedVariants} {
		for _, rules := range table {
			for _, rule := range rules {
				found[rule] = true
			}
		}
	}
	for _, c := range check.Checks {
		if !found[c.ID] {
			t.Errorf("no variant breaks %s", c.ID)
		}
	}
	for _, name := range soundVariants {
		if _, broken := variants[name]; broken || strings.Contains(name, " ") {
			t.Errorf("%s is sound and broken", name)
		}
	}
}
