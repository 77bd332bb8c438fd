package workspace

import (
	"io"
	"regexp"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/lazyregexp"
	"github.com/agent-on-demand/aod/mask"
)

// maxKeyBytes bounds how much of a file is searched for keys.
const maxKeyBytes = 1 << 20

// risks are the paths that a person looks at first, each with the reason.
var risks = []struct {
	path func() *regexp.Regexp
	why  string
}{
	{lazyregexp.New(`^(\.github/(workflows|actions)/|\.gitea/|\.forgejo/|\.circleci/|\.buildkite/|\.woodpecker)|^(\.gitlab-ci\.ya?ml|\.travis\.ya?ml|\.drone\.ya?ml|azure-pipelines\.ya?ml|bitbucket-pipelines\.ya?ml|[Jj]enkinsfile)$`), "runs in CI"},
	{lazyregexp.New(`(^|/)(\.husky|\.?git-?hooks)/|(^|/)(\.pre-commit-config\.ya?ml|\.?lefthook\.ya?ml)$`), "is a hook"},
	{lazyregexp.New(`(^|/)(\.gitattributes|\.gitmodules|\.envrc|\.vscode/(tasks|launch|settings)\.json)$`), "has tools start programs"},
}

// mind says why a person should look at a change first, the worst first.
func (c *comparison) mind(change api.Change) (why []string) {
	if change.Mode == modeProgram && change.ModeWas != "" || change.Mode == modeProgram && change.Op == api.OpAdd {
		why = append(why, "can be executed, which is new")
	}
	for _, risk := range risks {
		if risk.path().MatchString(change.Path) {
			why = append(why, risk.why)
		}
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
