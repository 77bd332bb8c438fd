package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// longTargets are the targets of the Makefile that run what is long, by the variables that they set. A
// variable says how much is done.
var longTargets = map[string]string{
	"AOD_KILLS": "kill", "AOD_TURNS": "kill", // of the server, and turns of each conversation
	"AOD_CUTS": "cuts", "AOD_CUT": "cuts", // of the way to the engine, and seconds without it
	"AOD_PARTITIONS": "partition", "AOD_PARTITION_RUNS": "partition", "AOD_FILE_MIB": "partition", // rounds, runs of each, a file
	"AOD_MOMENTS": "powerloss", // at which the power fails
	"AOD_FULL":    "disk", "AOD_ERRORS": "disk",
	"AOD_LOAD": "long", "AOD_RUNS": "long", // at once, and in a backup
	"AOD_VARIANTS": "long", "AOD_EXAMPLES": "long", // 1: all
}

// onlyLong leaves a test to the long form, in which a target of make sets the variable: what it proves
// takes an engine long, and other tests prove the parts of it in moments.
func onlyLong(t *testing.T, variable string) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("it is a part of make %s, which sets %s", longTargets[variable], variable)
	}
}

// long returns how much a test does that is left to the long form.
func long(t *testing.T, variable string) int {
	t.Helper()
	onlyLong(t, variable)
	return number(t, variable, 0)
}

// number returns what a variable says, of a test that does as much as is usual without it.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// dice are thrown for moments, by AOD_SEED where that is set.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := number(t, "AOD_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("to be repeated with AOD_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// Whatever is skipped where its variable isn't set is run by the target that sets it.
func TestEachLongTestIsRunByItsTarget(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]bool{}
	for test, names := range longTests(t) {
		for _, name := range names {
			variables[name] = true
			recipe := regexp.MustCompile(`(?m)^` + longTargets[name] + `:.*\n(\t.*\n)+`).FindString(string(raw))
			_, value, sets := strings.Cut(recipe, name+"=")
			pattern := regexp.MustCompile(`-run '?([^ ']+)`).FindStringSubmatch(recipe)
			if !sets || strings.HasPrefix(value, "0") || pattern == nil || !regexp.MustCompile(pattern[1]).MatchString(test) {
				t.Errorf("`make %s` doesn't run %s with %s: %s", longTargets[name], test, name, recipe)
			}
		}
	}
	if len(variables) != len(longTargets) {
		t.Errorf("of %d variables tests want %d", len(longTargets), len(variables))
	}
}

// longTests are the tests that ask for such variables, with these.
func longTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			test, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(test.Name.Name, "Test") {
				continue
			}
			ast.Inspect(test, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if name, _ := strconv.Unquote(literal.Value); longTargets[name] != "" {
						found[test.Name.Name] = append(found[test.Name.Name], name)
					}
				}
				return true
			})
		}
	}
	return found
}
