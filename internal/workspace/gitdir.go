package workspace

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	gitDir     = ".git"
	gitConfig  = ".git/config"
	packedRefs = ".git/packed-refs"

	maxPackedRefs = 16 << 20
)

// The settings of a .git that comes along are one of these: remotes, filters and aliases stay
// where they are.
var gitConfigs = map[string]string{
	"sha1": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
	"sha256": "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = false\n[extensions]\n" +
		"\tobjectformat = sha256\n",
}

// addGit takes what a .git needs to be one, and returns its settings.
func (s *scanner) addGit(ctx context.Context, dir string) ([]byte, error) {
	info, err := s.root.Lstat(gitDir)
	if err != nil || !info.IsDir() {
		return nil, fault.New(fault.Input, "%s has no .git directory to copy", fault.Quote(dir)).
			WithHint("name the top of a repository that is no linked work tree and no submodule")
	}
	format, err := runGit(ctx, dir, 64, "rev-parse", "--show-object-format")
	if err != nil {
		return nil, err
	}
	config, known := gitConfigs[strings.TrimSpace(string(format))]
	if !known {
		return nil, fault.New(fault.Unsupported, "the repository has an object format that isn't known")
	}
	if _, err := s.root.Lstat(path.Join(gitDir, "objects/info/alternates")); err == nil {
		return nil, fault.New(fault.Unsupported, "the repository borrows objects of another one").
			WithHint("run `git repack -a -d` and remove .git/objects/info/alternates")
	}
	return []byte(config), s.walkGit(ctx, gitDir, 0)
}

func (s *scanner) walkGit(ctx context.Context, dir string, depth int) error {
	if err := ctx.Err(); err != nil || depth > maxDepth {
		return err
	}
	return safefs.EachEntry(s.root, dir, func(entry fs.DirEntry) error {
		name := path.Join(dir, entry.Name())
		if entry.IsDir() && mayHoldGit(name) {
			return s.walkGit(ctx, name, depth+1)
		}
		if !entry.Type().IsRegular() || !isGitFile(name) || name == gitConfig {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return refused(name, "can't be read: "+safefs.Reason(err))
		}
		s.names = append(s.names, name)
		return s.tally.add(info.Size())
	})
}

// mayHoldGit reports whether a directory in .git may hold files that come along.
func mayHoldGit(dir string) bool {
	return dir == ".git/objects" || dir == ".git/refs" || isGitFile(dir+"/x")
}

// isGitFile reports whether a file of a .git comes along: its commits and where its branches
// stand, and nothing that names other places or starts programs.
func isGitFile(name string) bool {
	switch name {
	case ".git/HEAD", ".git/index", ".git/shallow", gitConfig, packedRefs:
		return true
	case ".git/objects/info/alternates", ".git/objects/info/http-alternates":
		return false
	}
	return nameProblem(name) == "" && !inGit(strings.TrimPrefix(name, ".git/")) &&
		!strings.HasPrefix(name, ".git/refs/remotes/") &&
		(strings.HasPrefix(name, ".git/objects/") || strings.HasPrefix(name, ".git/refs/"))
}

// withoutRemotes returns the content of a packed-refs without branches of other places.
func withoutRemotes(root *os.Root) ([]byte, error) {
	raw, err := safefs.ReadRegular(root, packedRefs, maxPackedRefs)
	if err != nil {
		return nil, err
	}
	var kept bytes.Buffer
	drop := false
	for line := range bytes.Lines(raw) {
		if !bytes.HasPrefix(line, []byte("^")) { // which belongs to the line before
			drop = bytes.Contains(line, []byte(" refs/remotes/"))
		}
		if !drop {
			kept.Write(line)
		}
	}
	return kept.Bytes(), nil
}
