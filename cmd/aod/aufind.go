package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// loadAU reads the Agentic Unit of a directory, a program on this machine, a name or an
// image.
func (a *app) loadAU(target string) (*capsule.Capsule, error) {
	info, err := os.Stat(target)
	switch {
	case err == nil && info.Mode().IsRegular():
		return a.wrapProgram(target)
	case err != nil && isImageName(target):
		return a.wrapImage(target)
	}
	c, err := a.load(target)
	if err != nil {
		return nil, err
	}
	if !c.IsAU() {
		return nil, fault.New(fault.Input, "%q is a capsule, no Agentic Unit", target).
			WithHint("run it with: aod run %s; an Agentic Unit's agent.yaml says kind: au", target)
	}
	return c, nil
}

// isImageName reports whether a target that is no file must be an image: names of units
// contain neither of these.
func isImageName(target string) bool {
	return strings.ContainsAny(target, ":/@") && !strings.HasPrefix(target, ".") && !strings.HasPrefix(target, "/")
}

// wrapImage makes a unit from an image whose program is one.
func (a *app) wrapImage(ref string) (*capsule.Capsule, error) {
	if strings.ContainsAny(ref, " \t\r\n\\$") {
		return nil, fault.New(fault.Input, "%q is no image", ref)
	}
	base, _, _ := strings.Cut(path.Base(ref), ":")
	base, _, _ = strings.Cut(base, "@")
	return a.wrap(base, "FROM "+ref+"\n", "")
}

// wrapProgram makes a unit from a program, in an image of its own: the unit runs the
// program as it was read now. A program that needs libc finds Debian's, a script its
// interpreter.
func (a *app) wrapProgram(program string) (*capsule.Capsule, error) {
	if info, err := os.Stat(program); err != nil || info.Mode()&0o111 == 0 {
		return nil, fault.Wrap(fault.Input, err, "%q is no program", program).WithHint("chmod +x it, if it is one")
	}
	text, err := programImage(program)
	if err != nil {
		return nil, err
	}
	return a.wrap(filepath.Base(program), text, program)
}

// wrap makes the directory of a unit in the data directory, once for each content.
func (a *app) wrap(name, dockerfile, program string) (*capsule.Capsule, error) {
	home := filepath.Join(a.data, "au")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, unwrapped(err)
	}
	temp, err := os.MkdirTemp(home, safefs.TempPrefix)
	if err != nil {
		return nil, unwrapped(err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // by then it has been renamed, or it failed
	digest, err := fillUnit(temp, nameFor(name), dockerfile, program)
	if err != nil {
		return nil, unwrapped(err)
	}
	dir := filepath.Join(home, digest)
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unwrapped(err)
	}
	return capsule.Load(dir)
}

func unwrapped(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the unit can't be put into the data directory").
		WithHint("is the disk full? --data DIR names another one")
}

// fillUnit writes a unit's directory and returns a digest of it.
func fillUnit(dir, name, dockerfile, program string) (digest string, err error) {
	agent := fmt.Sprintf("name: %s\nkind: au\n", name)
	sum := sha256.New()
	for file, text := range map[string]string{"Dockerfile": dockerfile, "agent.yaml": agent} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	_, _ = io.WriteString(sum, dockerfile+"\x00"+agent+"\x00") // writing to a hash never fails
	if program != "" {
		if err := copyProgram(sum, filepath.Join(dir, "unit"), program); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:24], nil
}

func copyProgram(sum io.Writer, to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	return err
}

var unfitForNames = lazyregexp.New(`[^a-z0-9]+`)

// nameFor derives a unit's name from the name of a file or an image.
func nameFor(base string) string {
	name := strings.Trim(unfitForNames().ReplaceAllString(strings.ToLower(base), "-"), "-")
	if len(name) > 48 {
		name = strings.Trim(name[:48], "-")
	}
	if name == "" {
		return "unit"
	}
	return name
}
