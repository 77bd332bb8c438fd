package workspace

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// aRepository is one whose settings start a program where somebody asks git in docs.
var aRepository = map[string]string{
	"docs/HEAD": "ref: refs/heads/main\n", "docs/objects/x": "", "docs/refs/x": "",
	"docs/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"echo >ran; false\"\n",
}

// applied has a run make files of a project, or remove them where their content is gone, and
// applies that.
func applied(t *testing.T, project string, made map[string]string, o ApplyOptions) (api.Changes, error) {
	t.Helper()
	base := mustStore(t, project, Options{})
	work := copyOf(t, base)
	for name, content := range made {
		if content == gone {
			if err := os.Remove(filepath.Join(work, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		put(t, work, name, content)
	}
	found, dest := compared(t, base, work, CompareOptions{})
	o.Run, o.Open = "r", from(dest)
	return found, Apply(project, found.Changes, o)
}

const gone = "-"

// gitStarts reports whether git starts the program of aRepository.
func gitStarts(t *testing.T, project string) bool {
	t.Helper()
	cmd := exec.Command("git", "status")
	cmd.Dir = filepath.Join(project, "docs")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, _ := cmd.CombinedOutput() // it may find no repository
	_, err := os.Stat(filepath.Join(cmd.Dir, "ran"))
	t.Logf("%s", out)
	return err == nil
}

func TestApplyMakesNoRepositoryWhoseProgramGitStarts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	project := tree(t, map[string]string{"docs/readme": "x\n"})
	found, err := applied(t, project, aRepository, ApplyOptions{})
	wantFault(t, err, fault.Forbidden, "docs/config", "would be a repository", "--with-repositories")
	if gitStarts(t, project) {
		t.Error("git started what the run had planted")
	}
	if diff := cmp.Diff(map[string]string{"docs/readme": "x\n"}, contents(t, project)); diff != "" {
		t.Error("something was written", diff)
	}
	for _, c := range found.Changes {
		if len(c.Mind) == 0 || !strings.Contains(c.Mind[0], "is in a repository") {
			t.Errorf("of %s one is to mind %q", c.Path, c.Mind)
		}
	}
	if _, err := applied(t, project, aRepository, ApplyOptions{Repositories: true}); err != nil {
		t.Error("a fixture:", err)
	}
	if !gitStarts(t, project) {
		t.Error("git starts no program of such a repository: the test shows nothing")
	}
}

func TestWhatIsARepositoryIsJudgedAsItWillBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there map[string]string
		made  []map[string]string // by one apply each
		fine  bool                // the last one may be written
	}{
		"in pieces":                         {nil, []map[string]string{{"d/HEAD": ""}, {"d/objects/x/y": ""}, {"d/refs/x": ""}}, false},
		"the rest of one that is there":     {map[string]string{"d/HEAD": "", "d/refs/x": ""}, []map[string]string{{"d/objects/x": ""}}, false},
		"the settings of one that is there": {map[string]string{"d/HEAD": "", "d/refs/x": "", "d/objects/x": ""}, []map[string]string{{"d/config": ""}}, false},
		"deep in one that is there":         {map[string]string{"d/HEAD": "", "d/refs/x": "", "d/objects/x": ""}, []map[string]string{{"d/hooks/a/b": ""}}, false},
		"at the top":                        {nil, []map[string]string{{"HEAD": "", "refs/x": "", "objects/x": ""}}, false},
		"of links":                          {map[string]string{"a/x": ""}, []map[string]string{{"d/HEAD": "-> refs/heads/main", "d/refs": "-> ../a", "d/objects": "-> ../a"}}, false},
		"of another case":                   {nil, []map[string]string{{"d/head": "", "D/Refs/x": "", "d/OBJECTS/x": ""}}, false},
		"of names of NTFS":                  {nil, []map[string]string{{"d/HEAD.": "", "d/refs::$INDEX_ALLOCATION/x": "", "d/objects /x": ""}}, false},
		"of names of HFS":                   {nil, []map[string]string{{"d/HE\u200cAD": "", "d/refs\ufeff/x": "", "d/objects/x": ""}}, false},
		"of a linked tree":                  {nil, []map[string]string{{"d/HEAD": "", "d/commondir": "../e\n"}}, false},
		"of Mercurial":                      {nil, []map[string]string{{"d/.hg/hgrc": ""}}, false},
		"of Mercurial, again":               {nil, []map[string]string{{"d/.HG./hgrc": ""}}, false},
		"of Jujutsu":                        {nil, []map[string]string{{".jj/repo/config.toml": ""}}, false},
		"a part of one":                     {nil, []map[string]string{{"d/HEAD": "", "d/objects/x": "", "e/refs/x": ""}}, true},
		"beside one":                        {map[string]string{"d/HEAD": "", "d/refs/x": "", "d/objects/x": ""}, []map[string]string{{"e/config": "", "config": ""}}, true},
		"one no more":                       {map[string]string{"d/HEAD": "", "d/refs/x": "", "d/objects/x": ""}, []map[string]string{{"d/HEAD": gone, "d/config": ""}}, true},
		"less of one":                       {map[string]string{"d/HEAD": "", "d/refs/x": "", "d/objects/x": ""}, []map[string]string{{"d/objects/x": gone}}, true},
		"the text of modules":               {nil, []map[string]string{{".gitmodules": "[submodule \"a\"]\n"}}, true},
		"an odd name":                       {nil, []map[string]string{{".../HEAD": "", `\..\x`: ""}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			project := tree(t, c.there)
			last := len(c.made) - 1
			for _, made := range c.made[:last] {
				if _, err := applied(t, project, made, ApplyOptions{}); err != nil {
					t.Fatal("a part:", err)
				}
			}
			was := contents(t, project)
			_, err := applied(t, project, c.made[last], ApplyOptions{})
			if c.fine {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFault(t, err, fault.Forbidden)
			if diff := cmp.Diff(was, contents(t, project)); diff != "" {
				t.Error("something was written", diff)
			}
			if _, err := applied(t, project, c.made[last], ApplyOptions{Check: true}); !fault.Is(err, fault.Forbidden) {
				t.Error("a check says:", err)
			}
			if _, err := applied(t, project, c.made[last], ApplyOptions{Repositories: true}); err != nil {
				t.Error("a fixture:", err)
			}
		})
	}
}

// No flag lets a change into what is git's, or Apply's own, by whatever name a system knows that.
func TestWhatIsGitsIsRefusedByAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		".git", "a/.git", ".GIT/config", "GIT~1/config", ".git./config", ".git /config", ".git::$INDEX_ALLOCATION/config", ".g\u200cit/config",
		`a\.git\config`, `a/b\.git/config`, `a\..\.git`, stageName + "/journal", ".AOD-Apply/journal", "aod-ap~1/journal", stageName + `\journal`,
	} {
		change := api.Change{Path: name, Op: api.OpAdd, Mode: modeFile, After: digestOf("")}
		err := Apply(t.TempDir(), []api.Change{change}, ApplyOptions{Run: "r", Repositories: true, Check: true})
		if !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"git", ".gitignore", "a.git", "git~2", ".github/x", ".aod-applied", ".aodignore"} {
		if inGit(name) || ours(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestMindsWhatToolsStartByThemselves(t *testing.T) {
	t.Parallel()
	const scripts = `{"name": "a", "scripts": {"test": "x"}}`
	project := tree(t, map[string]string{"same/package.json": scripts, "other/package.json": scripts, "less/package.json": scripts})
	made := map[string]string{
		".envrc": "", "sub/.EnvRC": "", "x/mise.toml": "", ".devcontainer/devcontainer.json": "", ".devcontainer.json": "", ".idea/workspace.xml": "",
		"shop.code-workspace": "", "tools/hooks/post-checkout": "", ".githooks/pre-commit": "", "lefthook.yml": "", ".vscode/tasks.json": "", ".vscode/mcp.json": "",
		".claude/settings.json": "", ".mcp.json": "", ".cargo/config.toml": "", ".npmrc": "", ".yarnrc.yml": "", ".gitconfig": "", ".nvim.lua": "", ".dir-locals.el": "",
		"new/package.json": scripts, "other/package.json": `{"scripts": {"postinstall": "evil"}}`, "torn/package.json": strings.Repeat(" ", maxKeyBytes) + scripts,
		"less/package.json": `{"name": "a"}`,
	}
	plain := map[string]string{"same/package.json": `{"scripts": {"test": "x"}, "name": "b"}`, "none/package.json": `{"name": "a"}`, "hooks/useShop.js": "", "docs/envrc": ""}
	for name, content := range plain {
		made[name] = content
	}
	base := mustStore(t, project, Options{})
	work := copyOf(t, base)
	for name, content := range made {
		put(t, work, name, content)
	}
	found, _ := compared(t, base, work, CompareOptions{})
	if len(found.Changes) != len(made) {
		t.Fatalf("%d changes, want %d", len(found.Changes), len(made))
	}
	for _, c := range found.Changes {
		told := false
		for _, why := range c.Mind {
			told = told || strings.Contains(why, "start") || strings.Contains(why, "hook")
		}
		if _, fine := plain[c.Path]; told == fine {
			t.Errorf("of %s one is to mind %q", c.Path, c.Mind)
		}
	}
}

// What a server sends has to be what its list announces.
func TestAnotherContentThanTheAnnouncedOneIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ mode, announced, sent string }{
		"of the same size":            {modeFile, "good", "evil"},
		"of a shorter one":            {modeFile, "good", "goo"},
		"of a longer one":             {modeFile, "good", "good!"},
		"of a program":                {modeProgram, "good", "evil"},
		"of a link":                   {modeLink, "good", "evil"},
		"of a link that is a way out": {modeLink, "../..", "../.."},
	} {
		t.Run(name, func(t *testing.T) {
			project := tree(t, map[string]string{"a": "x\n"})
			change := api.Change{Path: "new", Op: api.OpAdd, Mode: c.mode, After: digestOf(c.announced), Size: int64(len(c.announced))}
			err := Apply(project, []api.Change{change}, ApplyOptions{Run: "r", Open: func(api.Change) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(c.sent)), nil
			}})
			wantFault(t, err, fault.Internal, "isn't the one that was announced")
			if diff := cmp.Diff(map[string]string{"a": "x\n"}, contents(t, project)); diff != "" {
				t.Error("something was written", diff)
			}
		})
	}
}

// Between the last look and the renaming somebody may put a link in a directory's place.
func TestApplyRenamesThroughNoLink(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"out of the project": "", "to another directory of it": "b"} {
		t.Run(name, func(t *testing.T) {
			project, elsewhere := tree(t, map[string]string{"a/x": "x\n", "b/x": "x\n"}), t.TempDir()
			work := map[string]string{"a/new": "evil\n"}
			if target == "" {
				target = elsewhere
			}
			_, err := applied(t, project, work, ApplyOptions{step: func(what string) {
				if what != "rename" {
					return
				}
				err := errors.Join(os.RemoveAll(filepath.Join(project, "a")), os.Symlink(target, filepath.Join(project, "a")))
				if err != nil {
					t.Error(err)
				}
			}})
			wantFault(t, err, fault.Unavailable, "can't be changed")
			for _, dir := range []string{elsewhere, filepath.Join(project, "b")} {
				if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
					t.Errorf("it was written through the link, to %s", dir)
				}
			}
		})
	}
}
