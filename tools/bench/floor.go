package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	runcRun    = "`runc run`"
	barePython = "`python3` of the host"
)

// runcWay runs the job's program on its root file system; there is none without runc.
func (b *bench) runcWay(ctx context.Context, j job) ([]*way, error) {
	if !hasRunc() {
		return nil, nil
	}
	j, err := j.elsewhere(filepath.Join(b.dir, j.name+"-runc-io"))
	if err != nil {
		return nil, err
	}
	run, err := b.runcJob(ctx, j)
	return []*way{{name: runcRun, do: run, io: j.io}}, err
}

func (b *bench) runcJob(ctx context.Context, j job) (func(context.Context) error, error) {
	box, err := b.newBundle(ctx, j.image, j.io)
	return func(ctx context.Context) error { return box.run(ctx, "") }, err
}

// bareWay runs the job's bare program.
func (b *bench) bareWay(ctx context.Context, j job) ([]*way, error) {
	python := hostPython(ctx)
	if python == "" || j.bare == "" {
		return nil, nil
	}
	j, err := j.elsewhere(filepath.Join(b.dir, j.name+"-bare-io"))
	if err != nil {
		return nil, err
	}
	script := filepath.Join(b.dir, j.name+".py")
	if err := write(script, j.bare); err != nil {
		return nil, err
	}
	run := func(ctx context.Context) error { return command(ctx, python, script, j.io) }
	return []*way{{name: barePython, do: run, io: j.io}}, nil
}

// hostPython is the interpreter itself: what is called python3 may be a script that looks
// for one. It is "" where there is none.
func hostPython(ctx context.Context) string {
	if path := said(ctx, "python3", "-c", "import sys; print(sys.executable)"); path != "-" {
		return path
	}
	return ""
}

// hasRunc reports whether containers can be made with runc alone, which root can.
func hasRunc() bool {
	_, err := exec.LookPath("runc")
	return err == nil && os.Geteuid() == 0
}

// bundle is what runc makes containers of.
type bundle struct {
	dir, state string
	made       *atomic.Int64
}

// newBundle unpacks an image's file system and writes the configuration of its program,
// which has io as its /io; "" is none.
func (b *bench) newBundle(ctx context.Context, image, io string) (bundle, error) {
	dir, err := os.MkdirTemp(b.dir, "bundle-")
	box := bundle{dir: dir, state: filepath.Join(b.dir, "runc"), made: &atomic.Int64{}}
	if err != nil {
		return box, err
	}
	if err := unpack(ctx, image, dir); err != nil {
		return box, err
	}
	if err := command(ctx, "runc", "spec", "--bundle", dir); err != nil {
		return box, err
	}
	return box, adapt(ctx, filepath.Join(dir, "config.json"), image, io)
}

func unpack(ctx context.Context, image, dir string) (err error) {
	id := said(ctx, "docker", "create", "--label", benchLabel, image)
	defer func() { err = errors.Join(err, command(context.WithoutCancel(ctx), "docker", "rm", id)) }()
	archive, root := filepath.Join(dir, "root.tar"), filepath.Join(dir, "rootfs")
	if err := command(ctx, "docker", "export", "--output", archive, id); err != nil {
		return err
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := command(ctx, "tar", "-C", root, "-xf", archive); err != nil {
		return err
	}
	return os.Remove(archive)
}

// imageConfig is what an image says of its program, as docker image inspect has it.
type imageConfig struct {
	Entrypoint, Cmd, Env []string
	WorkingDir, User     string
}

// adapt has runc's own example of a configuration run what the image runs.
func adapt(ctx context.Context, path, image, io string) error {
	var of imageConfig
	raw, err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{json .Config}}", image).Output()
	if err != nil {
		return fmt.Errorf("inspect %s: %w", image, err)
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return err
	}
	var spec map[string]any
	if raw, err = os.ReadFile(path); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return err
	}
	process, isProcess := spec["process"].(map[string]any)
	mounts, isMounts := spec["mounts"].([]any)
	if !isProcess || !isMounts {
		return fmt.Errorf("%s is not as runc writes it", path)
	}
	process["terminal"] = false
	process["args"] = slices.Concat(of.Entrypoint, of.Cmd)
	process["env"] = of.Env
	process["cwd"] = "/" + strings.TrimPrefix(of.WorkingDir, "/")
	process["user"] = userOf(of.User)
	if io != "" {
		mounts = append(mounts,
			map[string]any{"destination": "/io", "type": "bind", "source": io, "options": []string{"rbind", "rw"}})
	}
	spec["mounts"] = mounts
	if raw, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// userOf reads "65532:65532"; "" is root.
func userOf(name string) map[string]any {
	uid, gid, _ := strings.Cut(name, ":")
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	return map[string]any{"uid": number(uid), "gid": number(gid)}
}

// run makes one container, which is gone afterwards, with a file as its stdin.
func (box bundle) run(ctx context.Context, stdin string) error {
	name := fmt.Sprintf("%s-%d", filepath.Base(box.dir), box.made.Add(1))
	return fed(ctx, stdin, "runc", "--root", box.state, "run", "--bundle", box.dir, name)
}
