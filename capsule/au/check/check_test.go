package check

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/checklist"
)

// ocrCard is a model card without a mistake.
const ocrCard = `{
  "name": "agx-ocr", "version": "0.1.0", "description": "Reads text in pictures.",
  "capabilities": ["ocr", "image-to-text"],
  "inputs": [{"media_type": "image/*", "description": "a picture"}],
  "outputs": [{"media_type": "application/json", "description": "its text"}],
  "config": {
    "model-path": {"type": "string", "description": "The model's file.", "default": null},
    "max-regions": {"type": "integer", "description": "At most so many regions.", "default": 100},
    "fast": {"type": "boolean", "description": "Less careful.", "default": false},
    "deskew": {"type": "boolean", "description": "Turn it upright first.", "default": true},
    "lang": {"type": "string", "description": "The language."}
  },
  "exit_codes": {"3": "no text found"}
}`

// with changes one piece of the card above.
func with(old, replacement string) string { return strings.Replace(ocrCard, old, replacement, 1) }

// pointer returns a counted number, beside what wasn't counted.
func pointer[T any](v T) *T { return &v }

// orderly is a run that ended as it should.
func orderly(code int, stdout, stderr string) Run {
	return Run{
		ExitCode: code, Duration: time.Second, Stdout: []byte(stdout), StderrTail: []byte(stderr), StderrBytes: int64(len(stderr)), StdinBytes: 100, StdinTaken: pointer(int64(100)),
		NetworkAttempts: pointer(0), Listened: pointer(0), FilesWritten: pointer(0), WritesTried: pointer(0), ProcessesLeft: pointer(0), PeakMemory: pointer(int64(1000)),
	}
}

// good is an observation of a unit that keeps every rule.
func good() Observation {
	refused := orderly(2, "", "Error: no picture\n")
	secret := orderly(2, "", "Error: no picture\n")
	secret.Canaries = []string{"a canary of many letters"}
	same := orderly(0, `{"n":1, "text":"Hello"}`, "")
	return Observation{
		Runs: map[Scenario]Run{
			ScenarioDescribe: orderly(0, ocrCard, ""), ScenarioDescribeAgain: orderly(0, ocrCard, ""), ScenarioDescribeThird: orderly(0, ocrCard, ""),
			ScenarioSample: orderly(0, `{"text":"Hello","n":1}`, ""), ScenarioAgain: same, ScenarioThird: same, ScenarioFourth: same, ScenarioFifth: same,
			ScenarioEmpty: refused, ScenarioCorrupt: refused, ScenarioDamaged: refused, ScenarioHuge: refused, ScenarioMissingModel: refused, ScenarioTraversal: refused,
			ScenarioSecret: secret, ScenarioSecretArguments: secret, ScenarioWrongArgument: secret, ScenarioUnknownArgument: secret, ScenarioLittleMemory: orderly(1, "", "Error: out of memory\n"),
		},
		Source: &Source{true, true, true, true}, MemoryLimit: 2000,
	}
}

// marks lists the checks that have the mark.
func marks(r checklist.Results, m Verdict) []string {
	var ids []string
	for _, result := range r {
		if result.Verdict == m {
			ids = append(ids, result.ID)
		}
	}
	return ids
}

func TestAGoodUnitPassesEveryCheck(t *testing.T) {
	report := Judge(good())
	for _, r := range report {
		if r.Verdict != Pass || r.Why == "" {
			t.Errorf("%s: %s: %s", r.ID, r.Verdict, r.Why)
		}
	}
	if report.Failed() || report.Count(Pass) != len(Checks) {
		t.Error("the report says otherwise than its results")
	}
}

func TestACardAloneProvesNothingOfTheUnit(t *testing.T) {
	o := Observation{Runs: map[Scenario]Run{ScenarioDescribe: good().Runs[ScenarioDescribe]}, MemoryLimit: 2000}
	if diff := cmp.Diff([]string{"describe", "describe-schema", "capabilities", "config-documented"}, marks(Judge(o), Pass)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingObservedIsNothingJudged(t *testing.T) {
	report := Judge(Observation{})
	if got := marks(report, NotApplicable); len(got) != len(Checks) || report.Failed() {
		t.Errorf("not applicable: %v", got)
	}
}

// breach is one way to break the rules, and the checks that have to notice.
type breach struct {
	name  string
	in    Scenario
	spoil func(*Run)
	fails []string
}

var breaches = []breach{
	{"--describe exits with 1", ScenarioDescribe, func(r *Run) { r.ExitCode = 1 }, []string{"describe"}},
	{"--describe waits for stdin", ScenarioDescribe, func(r *Run) { r.TimedOut = true }, []string{"describe"}},
	{"--describe crashes", ScenarioDescribe, func(r *Run) { r.ExitCode = 139 }, []string{"describe"}},
	{"--describe prints a log line first", ScenarioDescribe, func(r *Run) { r.Stdout = []byte("loading\n" + ocrCard) }, []string{"describe"}},
	{"the card has no version", ScenarioDescribe, func(r *Run) { r.Stdout = []byte(with(`"version": "0.1.0", `, "")) }, []string{"describe-schema"}},
	{"the card lists no capability", ScenarioDescribe, func(r *Run) { r.Stdout = []byte(with(`["ocr", "image-to-text"]`, "[]")) }, []string{"capabilities"}},
	{"a parameter has no description", ScenarioDescribe, func(r *Run) { r.Stdout = []byte(with("The language.", " ")) }, []string{"config-documented"}},

	{"stdin is left half read", ScenarioSample, func(r *Run) { r.StdinTaken = pointer(int64(50)) }, []string{"stdin-bytes"}},
	{"a log line stands before the result", ScenarioSample, func(r *Run) { r.Stdout = []byte("loading\n{}") }, []string{"stdout-json-only"}},
	{"success in silence", ScenarioSample, func(r *Run) { r.Stdout = nil }, []string{"stdout-json-only"}},
	{"a good input is refused", ScenarioSample, func(r *Run) { r.ExitCode, r.Stdout, r.StderrTail = 2, nil, []byte("Error: no") }, []string{"exit-codes"}},
	{"it never ends", ScenarioSample, func(r *Run) { r.TimedOut = true }, []string{"in-time"}},
	{"it takes too long", ScenarioSample, func(r *Run) { r.Duration = DefaultTimeLimit + 1 }, []string{"in-time"}},
	{"another result the second time", ScenarioAgain, func(r *Run) { r.Stdout = []byte(`{"text":"Hallo","n":1}`) }, []string{"deterministic"}},
	{"another code the second time", ScenarioAgain, func(r *Run) { r.ExitCode = 1; r.Stdout = nil; r.StderrTail = []byte("Error: x") }, []string{"deterministic"}},

	{"a long input is left half read", ScenarioHuge, func(r *Run) { r.ExitCode, r.Stdout, r.StdinTaken = 0, []byte("{}"), pointer(int64(50)) }, []string{"stdin-bytes"}},
	{"the sample fills the memory", ScenarioSample, func(r *Run) { r.ExitCode, r.OutOfMemory, r.Stdout = 137, true, nil }, []string{"out-of-memory"}},
	{"--describe fills the memory", ScenarioDescribe, func(r *Run) { r.ExitCode, r.OutOfMemory, r.Stdout = 137, true, nil }, []string{"out-of-memory"}},
	{"an unknown flag is taken", ScenarioUnknownArgument, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte("{}") }, []string{"exit-codes"}},
	{"a text is taken for a number", ScenarioWrongArgument, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte("{}") }, []string{"exit-codes"}},
	{"the card says that it prints text", ScenarioDescribe, func(r *Run) { r.Stdout = []byte(with("application/json", "text/plain")) }, []string{"describe-schema"}},
	{"the card has a model for all", ScenarioDescribe, func(r *Run) {
		r.Stdout = []byte(with(`"The model's file.", "default": null`, `"The model's file.", "default": "/opt/m.gguf"`))
	}, []string{"describe-schema"}},

	{"an error stands on stdout", ScenarioEmpty, func(r *Run) { r.Stdout = []byte(`{"error":"empty"}`) }, []string{"stderr-only-errors"}},
	{"an empty input gives a result", ScenarioEmpty, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte(`{"text":""}`) }, []string{"exit-empty-input"}},
	{"an empty input gives a general error", ScenarioEmpty, func(r *Run) { r.ExitCode = 1 }, []string{"exit-empty-input"}},
	{"an empty input gives a silent error", ScenarioEmpty, func(r *Run) { r.StderrTail, r.StderrBytes = nil, 0 }, []string{"error-messages"}},
	{"a corrupt input crashes it", ScenarioCorrupt, func(r *Run) { r.ExitCode = 139 }, []string{"exit-corrupt-input"}},
	{"a corrupt input gives a traceback", ScenarioCorrupt, func(r *Run) { r.StderrTail = []byte("Traceback (most recent call last):\n") }, []string{"error-messages"}},
	{"a corrupt input gives success in silence", ScenarioCorrupt, func(r *Run) { r.ExitCode, r.Stdout = 0, nil }, []string{"stdout-json-only"}},
	{"a huge input hangs it", ScenarioHuge, func(r *Run) { r.TimedOut = true }, []string{"exit-huge-input"}},
	{"a huge input fills the memory", ScenarioHuge, func(r *Run) { r.ExitCode, r.OutOfMemory = 137, true }, []string{"out-of-memory"}},
	{"a huge input is refused in silence", ScenarioHuge, func(r *Run) { r.StderrTail, r.StderrBytes = nil, 0 }, []string{"error-messages"}},
	{"all memory is taken", ScenarioHuge, func(r *Run) { r.PeakMemory = pointer(int64(2000)) }, []string{"memory-bound"}},

	{"a missing model is a general error", ScenarioMissingModel, func(r *Run) { r.ExitCode = 1 }, []string{"exit-missing-model"}},
	{"a missing model is an error of its own", ScenarioMissingModel, func(r *Run) { r.ExitCode = 3 }, []string{"exit-missing-model"}},
	{"a missing model is no matter", ScenarioMissingModel, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte("{}") }, []string{"exit-missing-model"}},
	{"a missing model is fetched", ScenarioMissingModel, func(r *Run) { r.NetworkAttempts = pointer(2) }, []string{"no-model-download"}},
	{"a path leads away", ScenarioTraversal, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte("{}") }, []string{"path-traversal"}},
	{"a little memory kills it", ScenarioLittleMemory, func(r *Run) { r.ExitCode, r.OutOfMemory = 137, true }, []string{"out-of-memory"}},
	{"a little memory ends it in silence", ScenarioLittleMemory, func(r *Run) { r.StderrTail, r.StderrBytes = nil, 0 }, []string{"error-messages"}},
	{"a little memory leaves half a result", ScenarioLittleMemory, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte(`{"a`) }, []string{"stdout-json-only"}},

	{"the input stands on stderr", ScenarioSecret, func(r *Run) { r.StderrTail = []byte("Error: can't read: a canary of many letters") }, []string{"secrets-not-echoed"}},
	{"a part of it", ScenarioSecret, func(r *Run) { r.StderrTail = []byte("Error: unexpected token: a canary o...") }, []string{"secrets-not-echoed"}},
	{"in capitals", ScenarioSecret, func(r *Run) { r.StderrTail = []byte("ERROR: A CANARY OF MANY LETTERS") }, []string{"secrets-not-echoed"}},
	{"in hexadecimal", ScenarioSecret, func(r *Run) { r.StderrTail = []byte("Error: bad magic 612063616E617279") }, []string{"secrets-not-echoed"}},
	{"an argument stands on stderr", ScenarioUnknownArgument, func(r *Run) { r.StderrTail = []byte("Error: --x=a canary of many letters") }, []string{"secrets-not-echoed"}},
	{"an invalid argument gives a general error", ScenarioWrongArgument, func(r *Run) { r.ExitCode = 1 }, []string{"exit-codes"}},
	{"another card the next time", ScenarioDescribeThird, func(r *Run) { r.Stdout = []byte(with("0.1.0", "0.1.1")) }, []string{"describe"}},
	{"no card the next time", ScenarioDescribeAgain, func(r *Run) { r.ExitCode, r.Stdout = 1, nil }, []string{"describe"}},
	{"another result the fifth time", ScenarioFifth, func(r *Run) { r.Stdout = []byte(`{"text":"Hallo","n":1}`) }, []string{"deterministic"}},
	{"what it calls for a corrupt input isn't there", ScenarioCorrupt, func(r *Run) { r.ExitCode = 127 }, []string{"exit-codes"}},
	{"it listens", ScenarioSample, func(r *Run) { r.Listened = pointer(1) }, []string{"no-network"}},
	{"it tries to write", ScenarioSample, func(r *Run) { r.WritesTried = pointer(1) }, []string{"no-files-written"}},
	{"stderr is flooded", ScenarioSecret, func(r *Run) { r.StderrBytes = 1 << 30 }, []string{"secrets-not-echoed"}},
	{"it calls home", ScenarioDescribe, func(r *Run) { r.NetworkAttempts = pointer(1) }, []string{"no-network"}},
	{"it writes a file", ScenarioSample, func(r *Run) { r.FilesWritten = pointer(1) }, []string{"no-files-written"}},
	{"it leaves a process", ScenarioSample, func(r *Run) { r.ProcessesLeft = pointer(1) }, []string{"no-leaks"}},
}

// set changes a scenario's run. The card is the same each time.
func set(o *Observation, s Scenario, spoil func(*Run)) {
	changed := []Scenario{s}
	if s == ScenarioDescribe {
		changed = describes
	}
	for _, s := range changed {
		run := o.Runs[s]
		spoil(&run)
		o.Runs[s] = run
	}
}

func TestEachBreachFailsItsChecksAndNoOther(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range breaches {
		t.Run(b.name, func(t *testing.T) {
			o := good()
			set(&o, b.in, b.spoil)
			report := Judge(o)
			if diff := cmp.Diff(b.fails, marks(report, Fail)); diff != "" || !report.Failed() {
				t.Error(diff)
			}
			for _, r := range report {
				if r.Why == "" || strings.Contains(r.Why, "canary") {
					t.Errorf("%s: %q", r.ID, r.Why)
				}
			}
		})
		for _, id := range b.fails {
			seen[id] = true
		}
	}
	for _, c := range Checks {
		if !seen[c.ID] && !slices.Contains([]string{"readme", "license", "unit-tests", "integration-tests"}, c.ID) {
			t.Errorf("no breach fails %s", c.ID)
		}
	}
}

func TestAUnitThatCannotStartPassesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*Run){
		"its interpreter is missing":       func(r *Run) { r.ExitCode, r.Stdout = 127, nil },
		"it can't be executed":             func(r *Run) { r.ExitCode, r.Stdout = 126, nil },
		"the init could not start it":      func(r *Run) { r.ExitCode, r.Stdout, r.StartError = 127, nil, "/unit: not found" },
		"it can't be started, with a card": func(r *Run) { r.ExitCode = 127 },
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			set(&o, ScenarioDescribe, spoil)
			report := Judge(o)
			if diff := cmp.Diff([]string{"describe"}, marks(report, Fail)); diff != "" || report.Count(Pass) > 0 || report.Count(NotApplicable) != len(Checks)-1 {
				t.Errorf("%s%+v", diff, report)
			}
		})
	}
}

func TestASourceThatLacksEverything(t *testing.T) {
	o := good()
	o.Source = &Source{}
	if diff := cmp.Diff([]string{"readme", "license", "unit-tests", "integration-tests"}, marks(Judge(o), Fail)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatDoesNotApply(t *testing.T) {
	with := func(change func(*Observation)) Observation {
		o := good()
		change(&o)
		return o
	}
	noModel := regexp.MustCompile(`(?m)^.*model-path.*\n`).ReplaceAllString(ocrCard, "")
	cases := []struct {
		name string
		o    Observation
		want []string
	}{
		{"the source, where there is only the program", with(func(o *Observation) { o.Source = nil }), []string{"readme", "license", "unit-tests", "integration-tests"}},
		{"models, where the card has none", with(func(o *Observation) { set(o, ScenarioDescribe, func(r *Run) { r.Stdout = []byte(noModel) }) }), []string{"no-model-download", "path-traversal", "exit-missing-model"}},
		{"a scenario that was not tried", with(func(o *Observation) { delete(o.Runs, ScenarioHuge) }), []string{"exit-huge-input"}},
		{"secrets, where none was given", with(func(o *Observation) {
			for _, s := range []Scenario{ScenarioSecret, ScenarioSecretArguments, ScenarioWrongArgument, ScenarioUnknownArgument} {
				delete(o.Runs, s)
			}
		}), []string{"secrets-not-echoed"}},
		{"listening, where one run was not watched", with(func(o *Observation) { set(o, ScenarioSample, func(r *Run) { r.Listened = nil }) }), []string{"no-network"}},
		{"writing, where one run was not watched", with(func(o *Observation) { set(o, ScenarioSample, func(r *Run) { r.WritesTried = nil }) }), []string{"no-files-written"}},
		{"the network, where one run was not watched", with(func(o *Observation) { set(o, ScenarioSample, func(r *Run) { r.NetworkAttempts = nil }) }), []string{"no-network"}},
		{"secrets that are empty", with(func(o *Observation) {
			for _, s := range []Scenario{ScenarioSecret, ScenarioSecretArguments, ScenarioWrongArgument, ScenarioUnknownArgument} {
				set(o, s, func(r *Run) { r.Canaries = []string{""} })
			}
		}), []string{"secrets-not-echoed"}},
		{"memory, where one run was not measured", with(func(o *Observation) { set(o, ScenarioSample, func(r *Run) { r.PeakMemory = nil }) }), []string{"memory-bound"}},
		{"memory without a limit", with(func(o *Observation) { o.MemoryLimit = 0 }), []string{"memory-bound"}},
		{"stdin that nobody counted", with(func(o *Observation) { set(o, ScenarioSample, func(r *Run) { r.StdinTaken = nil }) }), []string{"stdin-bytes"}},
		{"a corrupt input that is taken, of a unit whose card is bad", with(func(o *Observation) {
			set(o, ScenarioDescribe, func(r *Run) { r.Stdout = []byte("{}") })
			set(o, ScenarioCorrupt, func(r *Run) { r.ExitCode, r.Stdout = 0, []byte("{}") })
		}), []string{"exit-corrupt-input", "capabilities", "config-documented"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := marks(Judge(c.o), NotApplicable)
			slices.Sort(got)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABadInputMayBeTaken(t *testing.T) {
	anything := strings.Replace(ocrCard, "image/*", "*/*", 1)
	cases := []struct {
		name, card, stdout string
		code               int
	}{
		{"by a unit that takes any bytes", anything, `{"size":0}`, 0},
		{"with warnings", ocrCard, `{"text":"","warnings":["nothing could be read"]}`, 0},
		{"or refused with a code of its own", ocrCard, "", 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := good()
			set(&o, ScenarioDescribe, func(r *Run) { *r = orderly(0, c.card, "") })
			o.Runs[ScenarioCorrupt] = orderly(c.code, c.stdout, "Error: no picture")
			if failed := marks(Judge(o), Fail); failed != nil {
				t.Errorf("failed: %v", failed)
			}
		})
	}
}

// checklist is the specification's, item by item, each with its check.
var items = map[string][]string{
	"core contract":  {"describe", "describe-schema", "stdin-bytes", "stdout-json-only", "stderr-only-errors", "exit-codes"},
	"security":       {"no-model-download", "path-traversal", "exit-huge-input", "secrets-not-echoed", "no-network"},
	"error handling": {"error-messages", "exit-corrupt-input", "exit-missing-model", "out-of-memory"},
	"documentation":  {"readme", "capabilities", "config-documented", "license"},
	"testing":        {"unit-tests", "integration-tests", "describe-schema", "exit-corrupt-input"},
	"performance":    {"in-time", "memory-bound", "no-leaks"},
}

func TestEveryItemOfTheChecklistHasItsCheck(t *testing.T) {
	for group, ids := range items {
		for _, id := range ids {
			i := slices.IndexFunc(Checks, func(c checklist.Rule[*evidence]) bool { return c.ID == id })
			if i < 0 || !strings.Contains(Checks[i].Section, "10 "+group) {
				t.Errorf("%s: no check %s", group, id)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range Checks {
		if seen[c.ID] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(c.ID) || c.Title == "" || c.Section == "" {
			t.Errorf("the check %+v", c.ID)
		}
		seen[c.ID] = true
	}
}

func TestSameJSON(t *testing.T) {
	cases := []struct {
		name, a, b string
		want       bool
	}{
		{"the same bytes", `{"a":1}`, `{"a":1}`, true},
		{"another order and other space", `{"a":1,"b":[2]}`, `{"b": [2], "a": 1}`, true},
		{"another order in a list", `[1,2]`, `[2,1]`, false},
		{"numbers that a double can't tell apart", `[9007199254740993]`, `[9007199254740992]`, false},
		{"a field more", `{"a":null}`, `{}`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := sameJSON([]byte(c.a), []byte(c.b)); got != c.want {
				t.Errorf("sameJSON = %v", got)
			}
		})
	}
}

func TestACheckJudgesByItself(t *testing.T) {
	o := good()
	for i, r := range Judge(o) {
		if got, why := Checks[i].Judge(newEvidence(o)); got != r.Verdict || why != r.Why {
			t.Errorf("%s: %v alone, %v in the report", r.ID, got, r.Verdict)
		}
	}
}

func TestAReportIsJSON(t *testing.T) {
	rule := Checks[0]
	rule.Judge = func(*evidence) (Verdict, string) { return fail("because") }
	raw, err := json.Marshal(checklist.Judge([]checklist.Rule[*evidence]{rule}, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"id":"describe","title":"--describe prints the model card and ends","section":"4.1, 10 core contract","verdict":"fail","why":"because"}]`
	if string(raw) != want {
		t.Errorf("%s\nwant %s", raw, want)
	}
}
