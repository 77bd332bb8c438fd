package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
)

const handoffGuide = "capsule-api.md"

// What a handler serves is asked of one: each path with a method that none takes, so that
// it lists those that it does.
func TestTheCallsShownAreThoseThatThereAre(t *testing.T) {
	text, _ := readGuide(t, handoffGuide)
	handler := capsuleapi.NewHandler(handoff.Caller{}, nil, handoff.Limits{}, nil,
		capsuleapi.ArtifactMount(nil), capsuleapi.MessageMount(nil), capsuleapi.MemoryMount(nil))
	shown := map[string][]string{} // methods by path
	for _, m := range regexp.MustCompile(`(?m)^### ([A-Z]+) (/.*)$`).FindAllStringSubmatch(text, -1) {
		shown[m[2]] = append(shown[m[2]], m[1])
	}
	for _, path := range pathsOf(t) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPatch, path, http.NoBody))
		served := strings.Split(answer.Header().Get("Allow"), ", ")
		slices.Sort(shown[path])
		if diff := cmp.Diff(served, shown[path]); diff != "" {
			t.Errorf("%s, served and shown (+):\n%s", path, diff)
		}
		delete(shown, path)
	}
	for path := range shown {
		t.Errorf("there is nothing at %s", path)
	}
}

// pathsOf reads the paths where they are declared, in the handler and in the mounts that features give it: a
// handler can't list them.
func pathsOf(t *testing.T) []string {
	t.Helper()
	mounted := regexp.MustCompile(`return Mount\{Path: "(/[^"]+)"`)
	paths := declared(t, "../handoff/capsuleapi/handler.go", `(?m)^(?:\t+|const sharedPath = )"(/[^"]+)"(?:: +\{http\.|$)`)
	sources, err := filepath.Glob("../handoff/capsuleapi/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mounted.FindAllStringSubmatch(string(text), -1) {
			paths = append(paths, m[1])
		}
	}
	return paths
}

func TestTheRulesShownAreThoseThatThereAre(t *testing.T) {
	text, _ := readGuide(t, handoffGuide)
	var shown []string
	for _, row := range refusals(t, text) {
		if row.rule != "" {
			shown = append(shown, row.rule)
		}
	}
	slices.Sort(shown)
	there := declared(t, "../handoff/refusal.go", `(?m)^\tRule\w+ +Rule = "(\w+)"`)
	if diff := cmp.Diff(there, shown); diff != "" {
		t.Errorf("rules and shown (+):\n%s", diff)
	}
}

// declared lists what a pattern finds in a source file, sorted.
func declared(t *testing.T, file, pattern string) []string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s declares nothing of the kind", file)
	}
	slices.Sort(found)
	return found
}

func TestTheRefusalsShownHaveTheirStatus(t *testing.T) {
	text, _ := readGuide(t, handoffGuide)
	for _, row := range refusals(t, text) {
		kind, known := fault.KindNamed(row.code)
		if row.code != "method_not_allowed" && (!known || fmt.Sprint(fault.HTTPStatus(fault.New(kind, ""))) != row.status) {
			t.Errorf("there is no %s %s", row.status, row.code)
		}
	}
}

type refusalRow struct{ rule, status, code string }

func refusals(t *testing.T, text string) []refusalRow {
	t.Helper()
	var rows []refusalRow
	for _, m := range regexp.MustCompile("(?m)^\\| (?:`(\\w+)` \\| )?([0-9]{3}) `(\\w+)` \\|").FindAllStringSubmatch(sectionOf(t, text, "Refusals"), -1) {
		rows = append(rows, refusalRow{m[1], m[2], m[3]})
	}
	if len(rows) == 0 {
		t.Fatal("no refusal is shown")
	}
	return rows
}

func TestTheHandoffExamplesAreWellFormed(t *testing.T) {
	_, blocks := readGuide(t, handoffGuide)
	checks := map[string]func(*testing.T, string){"json": isJSON, "sh": isShell, "python": isPython, "go": isGo}
	seen := map[string]bool{}
	for i, b := range blocks {
		if check, known := checks[b.language]; known {
			seen[b.language] = true
			t.Run(fmt.Sprint(b.language, " ", i), func(t *testing.T) { check(t, b.text) })
		}
	}
	for language := range checks {
		if !seen[language] {
			t.Errorf("there is no example in %s", language)
		}
	}
}

func isJSON(t *testing.T, text string) {
	if !json.Valid([]byte(text)) {
		t.Errorf("no JSON:\n%s", text)
	}
}

func isShell(t *testing.T, text string) { accepts(t, "example.sh", text, "sh", "-n") }

func isPython(t *testing.T, text string) {
	accepts(t, "example.py", text, "python3", "-m", "py_compile")
}

func isGo(t *testing.T, text string) {
	accepts(t, "main.go", text, "go", "build", "-trimpath", "-o", os.DevNull)
}

// accepts hands a file to a program that reads and doesn't run it.
func accepts(t *testing.T, name, text string, command ...string) {
	t.Helper()
	requirePrograms(t, command[0])
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, name), text)
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], name)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // what Go imports is compiled already, as for our program
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestThePythonNamesShownExist(t *testing.T) {
	source, err := os.ReadFile("../sdk/python/aod/__init__.py")
	if err != nil {
		t.Fatal(err)
	}
	_, exported, _ := strings.Cut(string(source), "__all__ = [")
	exported, _, _ = strings.Cut(exported, "]")
	text, _ := readGuide(t, handoffGuide)
	for _, m := range regexp.MustCompile(`(?:^|[^/\w])aod\.(\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(exported, `"`+m[1]+`"`) {
			t.Errorf("the package aod has no %s", m[1])
		}
	}
}

// The blocks with a title are files of one capsule.
func TestTheCallingCapsuleShownIsValid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "planner")
	writeFile(t, filepath.Join(dir, "Dockerfile"), "FROM aod/base\nCOPY . /capsule\n")
	writeFile(t, filepath.Join(dir, "run.py"), "import aod\n\naod.run()\n")
	writeFile(t, filepath.Join(dir, "schema.json"), `{"input": {"type": "object"}, "output": {"type": "object"}}`)
	_, blocks := readGuide(t, handoffGuide)
	titles := 0
	for _, b := range blocks {
		if b.title != "" {
			titles++
			writeFile(t, filepath.Join(dir, b.title), b.text)
		}
	}
	if _, err := capsule.Load(dir); err != nil || titles == 0 {
		t.Errorf("%d files: %v", titles, problems(err))
	}
}

func TestTheHandoffLinksLead(t *testing.T) {
	text, _ := readGuide(t, handoffGuide)
	for _, m := range regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)`).FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		target := m[1]
		if target == "" {
			target = handoffGuide
		}
		if _, err := os.Stat(target); err != nil {
			t.Error(err)
			continue
		}
		if anchor := m[2]; anchor != "" {
			raw, err := os.ReadFile(target)
			if err != nil || !anchorsOf(string(raw))[anchor] {
				t.Errorf("%s has no section #%s (%v)", target, anchor, err)
			}
		}
	}
}
