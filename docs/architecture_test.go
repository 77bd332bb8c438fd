package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const (
	architecture = "../ARCHITECTURE.md"
	ground       = "the ground" // the room that every other one may import
	module       = "github.com/agent-on-demand/aod/"
)

var (
	// placed are functions and types with their file: `a`, `T.b` (file).
	placed = regexp.MustCompile("((?:`[^`]+`(?:,\\s)?)+)\\s+\\(([^()` ]+\\.(?:go|py))\\)")
	named  = regexp.MustCompile("`(?:(\\w+)\\.)?(\\w+)`")

	// placedInComment are such ones in a comment: a.b, T (file.go). A file without a directory is the package's.
	placedInComment = regexp.MustCompile(`((?:\w+(?:\.\w+)?, )*\w+(?:\.\w+)?) \(([\w/]+\.(?:go|py))\)`)
	// isName tells names from the words of a sentence before a file.
	isName = regexp.MustCompile(`^\w+\.\w+$|^\w*[a-z]\w*[A-Z]\w*$|^[A-Z]\w*[a-z]\w*$`)
)

func TestTheFunctionsOfTheWalksAreThere(t *testing.T) {
	text, _ := readGuide(t, architecture)
	found := 0
	for _, m := range placed.FindAllStringSubmatch(text, -1) {
		for _, name := range named.FindAllStringSubmatch(m[1], -1) {
			found++
			checkDefinition(t, architecture, filepath.Join("..", m[2]), name[1], name[2])
		}
	}
	if found < 70 {
		t.Errorf("%s names %d functions with their file: has its form changed?", architecture, found)
	}
}

// The comments of packages go on where the page ends.
func TestTheFunctionsInTheCommentsOfPackagesAreThere(t *testing.T) {
	found := 0
	for dir := range packages(t) {
		comment := packageComment(t, dir)
		for _, m := range placedInComment.FindAllStringSubmatch(comment, -1) {
			path := filepath.Join("..", dir, m[2])
			if strings.Contains(m[2], "/") {
				path = filepath.Join("..", m[2])
			}
			if _, err := os.Stat(path); err != nil && m[2] != "_test.go" {
				t.Errorf("%s: %v", dir, err)
				continue
			}
			for _, name := range strings.Split(m[1], ", ") {
				if !isName.MatchString(name) {
					continue
				}
				found++
				of, name, isMethod := strings.Cut(name, ".")
				if !isMethod {
					of, name = "", of
				}
				checkDefinition(t, dir, path, of, name)
			}
		}
	}
	if found < 80 {
		t.Errorf("comments name %d functions with their file: has their form changed?", found)
	}
}

// packageComment returns the comment of a package, its white space as single spaces.
func packageComment(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, strings.Fields(file.Doc.Text())...)
	}
	return strings.Join(text, " ")
}

// checkDefinition fails the test where a page names a function or a type that its file doesn't define.
func checkDefinition(t *testing.T, page, path, of, name string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%s: %v", page, err)
		return
	}
	if !definition(of, name).Match(source) {
		t.Errorf("%s: %s doesn't define %s", page, path, strings.TrimPrefix(of+"."+name, "."))
	}
}

var pathOfFile = regexp.MustCompile(`^[\w-]+(?:/[\w.-]+)+\.(?:go|py|sh|json|md)$`)

// The decisions name files as well.
func TestTheFilesNamedAreThere(t *testing.T) {
	decisions, err := filepath.Glob("adr/*.md")
	if err != nil || len(decisions) < 7 {
		t.Fatalf("%d decisions: %v", len(decisions), err)
	}
	for _, page := range append(decisions, architecture) {
		text, _ := readGuide(t, page)
		for _, span := range spans.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", span[1])); pathOfFile.MatchString(span[1]) && err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// definition finds a function, a type or, where there is one, a type's method.
func definition(of, name string) *regexp.Regexp {
	if of != "" {
		return regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?` + of + `\) ` + name + `\(`)
	}
	return regexp.MustCompile(`(?m)^(?:func|def|type|class) ` + name + `[[(: ]`)
}

func TestTheWalksHaveAsManyFilesAsTheySay(t *testing.T) {
	text, _ := readGuide(t, architecture)
	said := regexp.MustCompile(`(?m)^(?:.* )?(\d+) files\b[^:]*:\n\n((?:\d+\. .*\n(?:   .*\n)*)+)`).FindAllStringSubmatch(text, -1)
	if len(said) != 4 {
		t.Fatalf("%d walks say of how many files they are", len(said))
	}
	for _, m := range said {
		files := map[string]bool{}
		for _, place := range placed.FindAllStringSubmatch(m[2], -1) {
			files[place[2]] = true
		}
		if strconv.Itoa(len(files)) != m[1] {
			t.Errorf("%s files are said, %d are named: %v", m[1], len(files), files)
		}
	}
}

func TestTheStatesShownAreThoseThatThereAre(t *testing.T) {
	text, _ := readGuide(t, architecture)
	shown := map[[2]string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(sectionOf(t, text, "The states of a run"), -1) {
		for _, to := range spans.FindAllStringSubmatch(row[2], -1) {
			shown[[2]string{row[1], to[1]}] = true
		}
	}
	states := []api.State{api.Idle, api.Starting, api.Running, api.Completed, api.Failed, api.Timeout, api.Cancelled, api.Cleanup}
	for _, from := range states {
		for _, to := range states {
			if run.Follows(from, to) != shown[[2]string{string(from), string(to)}] {
				t.Errorf("from %s to %s: %v, but the page says otherwise", from, to, run.Follows(from, to))
			}
		}
	}
}

// Every package has its place in the house, and imports what lies below it.
func TestTheFloorsAreTrue(t *testing.T) {
	text, _ := readGuide(t, architecture)
	var rows []string
	var beside []string // the house
	row := regexp.MustCompile("(?m)^\\| (\\d| ) \\| (`.*) \\|$")
	for _, m := range row.FindAllStringSubmatch(sectionOf(t, text, "The floors"), -1) {
		for _, name := range spans.FindAllStringSubmatch(m[2], -1) {
			if m[1] == " " {
				beside = append(beside, name[1])
				continue
			}
			rows = append(rows, name[1])
		}
	}
	slices.Reverse(beside)
	rows = append(beside, rows...)
	for dir, imports := range packages(t) {
		at := slices.Index(rows, dir)
		if at < 0 {
			t.Errorf("the floors have no `%s`", dir)
		}
		if slices.Contains(rows[at+1:], dir) {
			t.Errorf("the floors have `%s` twice", dir)
		}
		for _, below := range imports {
			if slices.Index(rows, below) <= at {
				t.Errorf("%s imports %s, which isn't below it", dir, below)
			}
		}
	}
	for _, dir := range rows {
		if _, there := packages(t)[dir]; !there {
			t.Errorf("there is no package %s", dir)
		}
	}
}

// Who may know whom is written once, by rooms.
func TestTheRoomsKnowWhomTheySay(t *testing.T) {
	text, _ := readGuide(t, architecture)
	rooms := map[string]string{"cmd": "", "docs": "", "tools": ""} // a path, and the name of its room
	may, used := map[string]bool{}, map[string]bool{}              // arrows
	row := regexp.MustCompile("(?m)^\\| (ground: )?(`.*) \\| (.*)\\|$")
	for _, m := range row.FindAllStringSubmatch(sectionOf(t, text, "The rooms"), -1) {
		paths := spans.FindAllStringSubmatch(m[2], -1)
		name := paths[0][1]
		if m[1] != "" {
			name = ground
		}
		for _, of := range paths {
			rooms[of[1]] = name
		}
		for _, other := range spans.FindAllStringSubmatch(m[3], -1) {
			to := other[1]
			if strings.HasPrefix(to, ".") {
				to = path.Join(name, to)
			}
			may[name+" imports "+to] = true
		}
	}
	for dir, imports := range packages(t) {
		from, known := roomOf(rooms, dir)
		if !known {
			t.Errorf("no room has %s", dir)
		}
		if from == "" || regexp.MustCompile(`test(/|$)|internal/testing/`).MatchString(dir) {
			continue
		}
		for _, of := range imports {
			to, _ := roomOf(rooms, of)
			if arrow := from + " imports " + to; to != from && to != ground {
				used[arrow] = true
				if !may[arrow] {
					t.Errorf("%s imports %s, and its room %s doesn't name %s", dir, of, from, to)
				}
			}
		}
	}
	for arrow := range may {
		if !used[arrow] {
			t.Errorf("the rooms say that %s, and no package of it does", arrow)
		}
	}
}

// roomOf returns the room with the longest path above a package.
func roomOf(rooms map[string]string, dir string) (room string, known bool) {
	longest := -1
	for above, name := range rooms {
		if (dir == above || strings.HasPrefix(dir, above+"/")) && len(above) > longest {
			room, known, longest = name, true, len(above)
		}
	}
	return room, known
}

// packages returns what the packages of the main module import of it, tests left out, by
// their directory from its root. Examples are none of the house's.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != ".." && isElsewhere(path) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		dir := strings.TrimPrefix(filepath.Dir(path), "../")
		imports, err := importsOf(path)
		all[dir] = append(all[dir], imports...)
		return err
	})
	if err != nil || len(all) < 40 {
		t.Fatalf("%d packages: %v", len(all), err)
	}
	return all
}

// isElsewhere tells directories of the house from those of other modules and of none.
func isElsewhere(dir string) bool {
	name := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return name[0] == '.' || name == "testdata" || name == "examples" || err == nil
}

// importsOf lists the packages of the module that a file imports, unless it is a test's.
func importsOf(path string) (imports []string, err error) {
	if strings.HasSuffix(path, "_test.go") {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("imports: %w", err)
	}
	for _, spec := range file.Imports {
		if dir, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours {
			imports = append(imports, dir)
		}
	}
	return imports, nil
}
