package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const good = "---\nname: sums\ndescription: Adds numbers. Use it for sums.\n---\n# Sums\n"

// read reads the skills of a capsule with such files.
func read(t testing.TB, files map[string]string) ([]Skill, []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, Place, name), text)
	}
	return readIn(t, dir)
}

func readIn(t testing.TB, dir string) (found []Skill, told []string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	found, findings := Read(root)
	for _, f := range findings {
		text := strings.TrimPrefix(f.String(), Place+"/")
		if f.Warning {
			text = "! " + text
		}
		if f.Hint == "" {
			t.Errorf("%s: no hint", text)
		}
		told = append(told, text)
	}
	return found, told
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSkillsAreReadWithTheirScripts(t *testing.T) {
	t.Parallel()
	found, told := read(t, map[string]string{
		"README.md": "Not a skill.", ".git/config": "",
		"sums/SKILL.md":            strings.Replace(good, "numbers", `numbers`, 1),
		"sums/scripts/add.py":      "import sys\n",
		"sums/scripts/lib/rows.js": "",
		"sums/scripts/all":         "#!/usr/bin/env -S ruby -w\n", "sums/scripts/sh": "#!/bin/bash -e\n", "sums/scripts/notes.txt": "#\n", "sums/scripts/bare": "#!\n",
		"sums/references/a.md": "", "sums/.cache/x": "",
		"forms/SKILL.md": "\ufeff---\r\nname: forms\r\ndescription: >-\r\n  Fills\r\n  forms.\r\nlicense: MIT\r\ncompatibility: Needs git\r\n" +
			"metadata: {version: 1.0}\r\nallowed-tools: Bash(git:*) Read\r\n---\r\n",
	})
	want := []Skill{
		{Name: "forms", Description: "Fills forms."},
		{Name: "sums", Description: "Adds numbers. Use it for sums.", Scripts: []Script{
			{"scripts/add.py", "python3"},
			{"scripts/all", "ruby"},
			{"scripts/bare", ""},
			{"scripts/notes.txt", ""},
			{"scripts/sh", "/bin/bash"},
			{"scripts/lib/rows.js", "node"},
		}},
	}
	if diff := cmp.Diff(want, found); diff != "" || told != nil {
		t.Error(diff, told)
	}
}

func TestWithoutAFolderThereAreNone(t *testing.T) {
	t.Parallel()
	if found, told := readIn(t, t.TempDir()); found != nil || told != nil {
		t.Error(found, told)
	}
}

func TestWhatIsWrongWithADocument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 65)
	for _, c := range []struct{ name, folder, text, want string }{
		{"no front matter", "sums", "# Sums\n", "SKILL.md:1: it doesn't begin with a front matter"},
		{"an open one", "sums", "---\nname: sums\n", "SKILL.md:1: it doesn't begin with a front matter"},
		{"bytes that are no text", "sums", good + "\xff", "SKILL.md:1: it doesn't begin with a front matter in UTF-8"},
		{"a long one", "sums", "---\nlicense: " + strings.Repeat("x", 17<<10) + "\n---\n", "SKILL.md:1: it doesn't begin with a front matter in UTF-8 of at most 16KiB"},
		{"no YAML", "sums", "---\nname: sums\ndescription: use it: now\n---\n", "SKILL.md:3: it isn't YAML"},
		{"a list", "sums", "---\n- a\n---\n", "SKILL.md:2: name isn't that of the folder"},
		{"another name", "sums", strings.Replace(good, "name: sums", "name: other", 1), "SKILL.md:2: name isn't that of the folder (write name: sums)"},
		{"a name that is a number", "5", strings.Replace(good, "sums", "5", 1), "SKILL.md:2: name isn't that of the folder"},
		{"upper case", "Sums", strings.Replace(good, "sums", "Sums", 1), `SKILL.md:2: "Sums" can't be the name of a skill`},
		{"two hyphens", "a--b", strings.Replace(good, "sums", "a--b", 1), `SKILL.md:2: "a--b" can't be the name`},
		{"a long name", long, strings.Replace(good, "sums", long, 1), `SKILL.md:2: "` + long + `" can't be the name`},
		{"no description", "sums", "---\nname: sums\n---\n", "SKILL.md:2: description is missing"},
		{"an empty one", "sums", "---\nname: sums\ndescription: ' '\n---\n", "SKILL.md:3: description isn't what it has to be (say what it does"},
		{"a long one", "sums", "---\nname: sums\ndescription: " + strings.Repeat("ä", 1025) + "\n---\n", "SKILL.md:3: description isn't"},
		{"tools that aren't names", "sums", strings.Replace(good, "---\n#", "allowed-tools: {a: b}\n---\n#", 1), "SKILL.md:4: allowed-tools isn't"},
		{"metadata that is a text", "sums", strings.Replace(good, "---\n#", "metadata: x\n---\n#", 1), "SKILL.md:4: metadata isn't"},
		{"compatibility without an end", "sums", strings.Replace(good, "---\n#", "compatibility: "+strings.Repeat("x ", 500)+"\n---\n#", 1), "SKILL.md:4: compatibility isn't"},
		{"a large one", "sums", good + strings.Repeat("x", 65<<10), "SKILL.md: it is larger than 64KiB"},
		{"aliases without end", "sums", "---\na: &a [*a]\n---\n", "SKILL.md:2: it is nested more than 32 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, told := read(t, map[string]string{c.folder + "/SKILL.md": c.text})
			if len(found) > 0 || len(told) == 0 || !strings.HasPrefix(told[0], c.folder+"/"+c.want) {
				t.Errorf("%v, %q\nwant %s", found, told, c.want)
			}
		})
	}
}

func TestAKeyOfSomebodyElsesIsWorthAWarning(t *testing.T) {
	t.Parallel()
	found, told := read(t, map[string]string{"sums/SKILL.md": strings.Replace(good, "---\n#", "licence: MIT\n---\n#", 1)})
	want := []string{`! sums/SKILL.md:4: the key "licence" is none of a skill's (did you mean license?)`}
	if diff := cmp.Diff(want, told); diff != "" || len(found) != 1 {
		t.Error(diff, found)
	}
}

func TestWhatIsWrongWithAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := filepath.Join(dir, Place)
	write(t, place+"/sums/SKILL.md", good)
	write(t, place+"/sums/references/a.md", strings.Repeat("x", 257<<10))
	write(t, dir+"/secret", "")
	for name, target := range map[string]string{"in": "references/a.md", "out": "../../../../secret", "root": "/", "references/up": "../../other"} {
		must(t, os.Symlink(target, filepath.Join(place, "sums", name)))
	}
	must(t, unix.Mkfifo(place+"/sums/pipe", 0o644))
	must(t, os.Symlink("sums", place+"/linked"))
	must(t, os.MkdirAll(place+"/empty", 0o755))
	must(t, os.MkdirAll(place+"/piped", 0o755))
	must(t, unix.Mkfifo(place+"/piped/SKILL.md", 0o644))
	_, told := readIn(t, dir)
	want := []string{
		"empty/SKILL.md: it is missing (add it: a front matter with name and description, then the instructions)",
		"linked: it is a symbolic link, which isn't followed (put the folder itself there)",
		"piped/SKILL.md: it is a FIFO, not a regular file (put the thing itself there, without a link)",
		"! sums/in: it is a link, which isn't followed (put the file itself there)",
		"sums/out: it is a link out of the skill's folder (put the file itself there, or remove it)",
		"sums/pipe: it is a FIFO, not a regular file (put the file itself there)",
		"sums/root: it is a link out of the skill's folder (put the file itself there, or remove it)",
		"! sums/references/a.md: a model can read its first 256KiB alone (split it)",
		"sums/references/up: it is a link out of the skill's folder (put the file itself there, or remove it)",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestALinkInThePlaceOfAllIsntFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/elsewhere/sums/SKILL.md", good)
	must(t, os.MkdirAll(filepath.Join(dir, "src/ai"), 0o755))
	must(t, os.Symlink("../../elsewhere", filepath.Join(dir, Place)))
	found, told := readIn(t, dir)
	if len(found) > 0 || len(told) != 1 || !strings.Contains(told[0], "is a symbolic link, not a directory") {
		t.Errorf("%v %q", found, told)
	}
}

func TestFoldersWithoutEndAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := filepath.Join(dir, Place)
	write(t, place+"/many/SKILL.md", strings.Replace(good, "sums", "many", 1))
	for i := range 10_000 {
		must(t, os.Link(place+"/many/SKILL.md", fmt.Sprintf("%s/many/%d", place, i)))
	}
	must(t, os.MkdirAll(place+"/deep"+strings.Repeat("/d", 500), 0o755))
	for i := range 200 {
		must(t, os.MkdirAll(fmt.Sprintf("%s/x%d", place, i), 0o755))
	}
	must(t, os.WriteFile(place+"/deep/SKILL.md", nil, 0o644))
	must(t, os.Truncate(place+"/deep/SKILL.md", 50<<20))
	began := time.Now()
	found, told := readIn(t, dir)
	t.Logf("%v, %d skills, %d findings", time.Since(began), len(found), len(told))
	if time.Since(began) > 5*time.Second || len(found) > maxSkills || len(told) > 2*maxSkills+10 {
		t.Errorf("%v, %d skills, %d findings", time.Since(began), len(found), len(told))
	}
	if all := strings.Join(told, "\n"); !strings.Contains(all, "it holds more than 100 skills") {
		t.Error(all)
	}
	for name, want := range map[string]string{"many": "it holds more than 1000 files", "deep": "it holds more than 99 folders"} {
		one := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(one, "src/ai/skills"), 0o755))
		must(t, os.Rename(place+"/"+name, filepath.Join(one, Place, name)))
		if _, told := readIn(t, one); !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("%s: %q", name, told)
		}
	}
}

// Whatever the bytes, the parser returns a skill that keeps the rules, or says what is wrong.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		good, "---\n---\n", "---\nname: sums\n---", "---\n<<: {name: sums}\n---\n", "---\nname: &a sums\ndescription: *a\nmetadata: {a: [*a]}\n---\n",
		"\ufeff---\r\nname: sums\r\n---\r\n", "---\n- \x1b[31m\n---\n", "---\nallowed-tools: [a, b]\n? [x]\n: y\n---\n", "---\nname: !!binary x\n--- \n",
	} {
		f.Add([]byte(seed))
	}
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		skill, findings := parse("f", "sums", raw)
		if bad := len(fault.Errors(findings)) > 0; bad == (skill.Name != "") || !bad && !within(skill.Description, 1, maxDescription) {
			t.Fatalf("%+v %v", skill, findings)
		}
		for _, finding := range findings {
			if finding.File != "f" || finding.Line < 1 || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
		}
	})
}
