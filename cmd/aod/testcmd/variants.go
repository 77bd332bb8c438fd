package testcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// variant is one of the units, or models, that are compared. Where nothing is, there is one.
type variant struct {
	label  string // "": nothing is compared
	c      *capsule.Capsule
	beside *capsule.Capsule // beside it are the units that it may call
	model  string           // in the place of those that units name; "": those
	number int              // from 0
	kept   *journal         // nil: nothing is kept
}

// variants are those of a command, what is judged first.
type variants struct {
	list  []variant
	close func() // removes what was made for them
}

// variantsOf returns what the flags compare.
func variantsOf(ctx context.Context, env *cli.Env, c *capsule.Capsule, flags *testFlags) (variants, error) {
	all := variants{close: func() {}}
	for _, model := range flags.models {
		all.list = append(all.list, variant{label: model, c: c, beside: c, model: model})
	}
	switch len(all.list) {
	case 0:
		all.list = []variant{{c: c, beside: c}}
	case 1:
		all.list[0].label = ""
	}
	if flags.against == "" {
		return all, nil
	}
	dir, remove, err := unitAt(ctx, c.Dir, flags.against)
	if err != nil {
		return all, err
	}
	all.close = remove
	other, err := lookup.LoadDir(env, dir)
	if err != nil {
		remove()
		return all, err
	}
	all.list[0].label = c.Name
	of := variant{label: flags.against, c: other, beside: other, model: all.list[0].model}
	if dir != flags.against {
		of.beside = c // a commit's unit calls those of today
	}
	all.list = append(all.list, of)
	return all, nil
}

// test runs the cases of the unit that is judged on a variant.
func (v variant) test(ctx context.Context, env *cli.Env, cases []capsule.Case, flags testFlags) (*testResults, error) {
	u, err := flags.given.Unit(v.c, flags.sources.Upstreams)
	if err != nil {
		return nil, err
	}
	flags.sources.Models.Instead, flags.sources.Models.Resume = v.model, v.kept.calls(v.number)
	flags.sources.Models.Answered = v.model == "" && slices.ContainsFunc(cases,
		func(c capsule.Case) bool { return c.Models != nil || c.Cassette != "" })
	req := orchestrator.Request{Request: run.Request{Unit: u}, Find: lookup.Callees(env, u, v.beside)}
	s := &suite{env: env, variant: v, req: req, cases: cases, flags: &flags}
	if v.label != "" && flags.asLines() {
		env.Out.Line("%s:", v.label)
	}
	err = withGraders(ctx, env, cases, req.Find, flags.sources, func(graders map[string]grader) error {
		s.graders = graders
		return flags.sources.WithUnit(ctx, env, req, s.run)
	})
	if err != nil {
		return nil, err
	}
	return s.results(), nil
}

// unitAt returns the directory of a unit as it is in another directory, or was at a commit of the git repository that
// it is in; then it is a copy, which remove removes.
func unitAt(ctx context.Context, dir, where string) (at string, remove func(), err error) {
	remove = func() {}
	if info, err := os.Stat(where); err == nil && info.IsDir() {
		return where, remove, nil
	}
	out, err := os.MkdirTemp("", "aod-against-")
	if err != nil {
		return "", remove, cli.NotKept(err, "the unit at "+where)
	}
	remove = func() { _ = os.RemoveAll(out) } // a temporary directory of ours
	at = filepath.Join(out, filepath.Base(dir))
	if err := unpackCommit(ctx, dir, where, at); err != nil {
		remove()
		return "", func() {}, err
	}
	return at, remove, nil
}

// unpackCommit writes a directory as it was at a commit. The error is an Input fault.
func unpackCommit(ctx context.Context, dir, commit, at string) error {
	var said bytes.Buffer
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// --end-of-options: a commit that looks like a flag is none
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "archive", "--format=tar", "--end-of-options", commit, ".")
	cmd.Stderr = &said
	archive, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		if err = registry.Unpack(at, archive); err != nil {
			stop()
		}
		err = cmp.Or(cmd.Wait(), err)
	}
	if err == nil {
		return nil
	}
	reason := fault.Clip(fault.OneLine(said.String()), fault.MaxQuoted)
	if errors.Is(err, exec.ErrNotFound) {
		reason = "there is no git"
	}
	return fault.Wrap(fault.Input, err, "--against %s is neither a directory nor a commit that has %s: %s",
		fault.Quote(commit), fault.Quote(dir), cmp.Or(reason, fault.Public(err).Msg)).
		WithHint("name a directory, or a commit, branch or tag of the repository of the unit")
}
