package workspace

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/mask"
)

// maxKeyBytes bounds how much of a file is searched for keys.
const maxKeyBytes = 1 << 20

// risks are the paths that a person looks at first, each with the reason. They are held against
// plain paths: in small letters.
var risks = []struct {
	path func() *regexp.Regexp
	why  string
}{
	{lazyregexp.New(`^(\.github/(workflows|actions)/|\.gitea/|\.forgejo/|\.circleci/|\.buildkite/|\.woodpecker)|` +
		`^(\.gitlab-ci\.ya?ml|\.travis\.ya?ml|\.drone\.ya?ml|azure-pipelines\.ya?ml|bitbucket-pipelines\.ya?ml|` +
		`jenkinsfile)$`), "runs in CI"},
	{lazyregexp.New(`(^|/)(\.husky|\.?git-?hooks|\.lefthook(-local)?)/|(^|/)(\.pre-commit-(config|hooks)\.ya?ml|` +
		`\.overcommit\.yml|\.huskyrc.*|\.?simple-git-hooks\.\w+|\.?lefthook(-local)?\.(ya?ml|json|toml))$|` +
		`(^|/)(pre-commit|pre-merge-commit|prepare-commit-msg|commit-msg|post-commit|pre-rebase|post-checkout|` +
		`post-merge|post-rewrite|pre-push|pre-auto-gc|post-index-change|reference-transaction|fsmonitor-watchman|` +
		`(pre|post)-applypatch|applypatch-msg)$`), "is a hook"},
	{lazyregexp.New(`(^|/)(\.gitattributes|\.gitmodules|\.gitconfig)$`), "has tools start programs"},
	// What a shell follows where one changes to the directory.
	{lazyregexp.New(`(^|/)(\.envrc|\.autoenv(\.zsh)?|\.tool-versions|\.?(mise|rtx)(\.[\w.-]+)?\.toml)$|` +
		`(^|/)(\.direnv|\.?mise|\.config/mise)/`), "has tools start programs"},
	// What an editor, or an agent of programming, follows where one opens the directory.
	{lazyregexp.New(`(^|/)(\.devcontainer|\.idea|\.run|\.fleet|\.zed|\.claude|\.codex|\.cursor|\.gemini)/|` +
		`(^|/)\.vscode/(tasks|launch|settings|mcp)\.json$|` +
		`(^|/)(\.devcontainer\.json|.*\.code-workspace|.*\.sublime-project|\.dir-locals(-2)?\.el|\.exrc|\.n?vimrc|` +
		`\.nvim\.lua|\.lvimrc|\.mcp\.json)$`), "has tools start programs"},
	// What a builder or a package manager follows, which editors start by themselves.
	{lazyregexp.New(`(^|/)(\.cargo/config(\.toml)?|build\.rs|\.npmrc|\.yarnrc(\.ya?ml)?|\.pnpmfile\.c?js|` +
		`bunfig\.toml|\.bazelrc|\.gdbinit|\.lldbinit)$|(^|/)(\.yarn/(releases|plugins)|gradle/wrapper|` +
		`\.mvn)/`), "has tools start programs"},
}

// flagRisks says why a person should look at a change first, the worst first.
func (c *comparison) flagRisks(change api.Change) (why []string) {
	if change.Mode == modeProgram && change.ModeWas != "" || change.Mode == modeProgram && change.Op == api.OpAdd {
		why = append(why, "can be executed, which is new")
	}
	if c.made.around(change.Path) != "" {
		why = append(why, "is in a repository, which has tools start programs: aod apply refuses it")
	}
	for _, risk := range risks {
		if risk.path().MatchString(plain(change.Path)) && !slices.Contains(why, risk.why) {
			why = append(why, risk.why)
		}
	}
	if c.hasOtherScripts(change) {
		why = append(why, "has other scripts, which a package manager starts")
	}
	if c.hasNewKey(change) {
		why = append(why, "holds what looks like a key")
	}
	if change.Mode == modeLink {
		why = append(why, "is a symbolic link")
	}
	if strings.HasPrefix(change.Path, ".") || strings.Contains(change.Path, "/.") {
		why = append(why, "is hidden: its name begins with a dot")
	}
	return why
}

// hasNewKey reports whether a file holds what looks like a key and held none before.
func (c *comparison) hasNewKey(change api.Change) bool {
	if !mask.HoldsKey(beginning(c.kept.Name(), change.Path)) {
		return false
	}
	return change.Op == api.OpAdd || change.ModeWas == modeLink || !mask.HoldsKey(beginning(c.base.Dir, change.Path))
}

// hasOtherScripts reports whether a file that describes a package names other programs than before.
// Where that can't be told, it does.
func (c *comparison) hasOtherScripts(change api.Change) bool {
	if base := path.Base(plain(change.Path)); base != "package.json" && base != "composer.json" ||
		change.Mode == modeLink {
		return false
	}
	now, known := scripts(c.kept.Name(), change.Path)
	if change.Op == api.OpAdd || change.ModeWas == modeLink {
		return !known || now != ""
	}
	was, wasKnown := scripts(c.base.Dir, change.Path)
	return !known || !wasKnown || now != was
}

// scripts returns the scripts of a package as they are written, and whether they are known.
func scripts(dir, name string) (string, bool) {
	var of map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(beginning(dir, name), []byte("\ufeff")), &of); err != nil {
		return "", false
	}
	return string(of["scripts"]), true
}

// beginning returns the first bytes of a file; none where it can't be read.
func beginning(dir, name string) []byte {
	f, err := openBelow(dir, name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // read only
	raw, _ := io.ReadAll(io.LimitReader(f, maxKeyBytes))
	return raw
}
