package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// inWorkTree reports whether git would take a directory for part of a work tree.
func inWorkTree(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// safeGit are the settings that a repository can't overrule: nothing that it names is started
// or fetched.
var safeGit = []string{
	"-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.hooksPath=/dev/null",
	"-c", "core.quotePath=false", "-c", "protocol.allow=never", "-c", "core.sshCommand=false", "--no-pager",
	"--literal-pathspecs",
}

// gitEnv is our environment without what tells git where to look or whom to start.
func gitEnv() []string {
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") && !strings.HasPrefix(variable, "LC_ALL=") {
			env = append(env, variable)
		}
	}
	return env
}

// gitFiles returns what git tracks or doesn't ignore below a directory, with `/` at the end of
// a repository of its own. The names are sorted, as git has them.
func gitFiles(ctx context.Context, dir string, limits Limits) ([]string, error) {
	most := int64(limits.Files+1) * (maxName + 1)
	raw, err := runGit(ctx, dir, most, "ls-files", "-co", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > most {
		return nil, (&tally{limits: limits, files: limits.Files}).add(0)
	}
	text := strings.TrimSuffix(string(raw), "\x00")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\x00"), nil
}

// runGit returns at most one byte more than most of what git answers in a directory whose
// settings may be a stranger's. The error is a fault.
func runGit(ctx context.Context, dir string, most int64, args ...string) ([]byte, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err,
			"%s is a work tree of git, and there is no git to ask which files it ignores", fault.Quote(dir)).
			WithHint("install git, or copy the files that the agent may see to a directory of their own")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, program, append(append([]string{"-C", dir}, safeGit...), args...)...)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr = gitEnv(), &limitedBuffer{b: &said, left: 4 << 10}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "git can't be started")
	}
	raw, err := io.ReadAll(io.LimitReader(out, most+1))
	if int64(len(raw)) > most {
		stop()
		_ = cmd.Wait() // it was stopped
		return raw, nil
	}
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return nil, fault.Wrap(fault.Input, err, "git can't read the work tree: %s",
			fault.Clip(fault.OneLine(said.String()), fault.MaxQuoted)).
			WithHint("does `git status` work there?")
	}
	return raw, nil
}

// limitedBuffer keeps the first bytes of what is written.
type limitedBuffer struct {
	b    *bytes.Buffer
	left int
}

// Write implements io.Writer.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), l.left)]
	l.left -= len(kept)
	_, _ = l.b.Write(kept) // never fails
	return len(p), nil
}

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
