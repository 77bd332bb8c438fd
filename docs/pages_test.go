package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	readme   = "../README.md"
	index    = "README.md"
	measured = "performance.md" // written by `make bench`
	mostWide = 120              // characters of a line
)

// narrow are pages without wide tables.
var narrow = []string{readme, index, architecture}

// pages lists the project's own pages: those of its root, of docs and of docs/adr.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../*.md", "*.md", "adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		all = append(all, found...)
	}
	return all
}

var links = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)|(?m:^\[[^]]+\]: (\S+)$)`)

func TestTheLinksShownLead(t *testing.T) {
	for _, name := range pages(t) {
		text, _ := readGuide(t, name)
		for _, m := range links.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			if err := leads(name, m[1]+m[3], m[2]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// leads reports a link of a page that leads nowhere.
func leads(page, target, anchor string) error {
	path := page
	if target != "" {
		path = filepath.Join(filepath.Dir(page), target)
	}
	if anchor == "" {
		_, err := os.Stat(path)
		return err
	}
	raw, err := os.ReadFile(path)
	if err == nil && !anchorsOf(string(raw))[anchor] {
		err = fmt.Errorf("%s has no section #%s", path, anchor)
	}
	return err
}

func TestTheIndexHasEveryPage(t *testing.T) {
	text, _ := readGuide(t, index)
	for _, name := range pages(t) {
		if filepath.Dir(name) == "." && name != index && !strings.Contains(text, "]("+name+")") {
			t.Errorf("%s doesn't say what %s is for", index, name)
		}
	}
}

// Rows of a table and what is to be pasted can't be broken. The first pages that somebody
// reads do without long ones.
func TestNoLineIsTooWide(t *testing.T) {
	for _, name := range pages(t) {
		if name == measured {
			continue
		}
		text, _ := readGuide(t, name)
		narrow := slices.Contains(narrow, name)
		if !narrow {
			text = fences.ReplaceAllString(text, "")
		}
		for line := range strings.SplitSeq(text, "\n") {
			isRow := strings.HasPrefix(line, "|") && !narrow
			if wide := utf8.RuneCountInString(line); wide > mostWide && !isRow {
				t.Errorf("%s has a line of %d characters: %s", name, wide, line)
			}
		}
	}
}

// cell is one of a table's, without the spaces around it.
var cell = regexp.MustCompile(`\|\s*([^|]*[^|\s])?\s*`)

func TestTheTimesOfTheREADMEWereMeasured(t *testing.T) {
	text, _ := readGuide(t, readme)
	page, _ := readGuide(t, measured)
	table := sectionOf(t, page, "A small Python job")
	shown := rows(sectionOf(t, text, "How long it takes"))
	if len(shown) < 4 {
		t.Fatalf("the README shows %d times", len(shown))
	}
	for _, row := range shown {
		known := slices.ContainsFunc(rows(table), func(m []string) bool {
			return m[0] == row[0] && m[1] == row[1] && m[2] == row[2] && m[4] == row[3]
		})
		if !known {
			t.Errorf("%s has not the times that the README gives to %s: copy those that were measured last", measured, row[0])
		}
	}
}

// rows lists the cells of the rows with figures in a text.
func rows(text string) (all [][]string) {
	for line := range strings.SplitSeq(text, "\n") {
		var cells []string
		for _, m := range cell.FindAllStringSubmatch(strings.TrimSuffix(line, "|"), -1) {
			cells = append(cells, m[1])
		}
		if len(cells) >= 4 && regexp.MustCompile(`^[0-9.]+$`).MatchString(cells[1]) {
			all = append(all, cells)
		}
	}
	return all
}
