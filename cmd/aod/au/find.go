package au

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// loadAU reads the Agentic Unit of a directory, a program on this machine, a name or an
// image.
func loadAU(env *cli.Env, target string) (*capsule.Capsule, error) {
	info, err := os.Stat(target)
	switch {
	case err == nil && info.Mode().IsRegular():
		return wrapProgram(env, target)
	case err != nil && isImageName(target):
		return wrapImage(env, target)
	}
	c, err := lookup.Load(env, target)
	if err != nil {
		return nil, err
	}
	if !c.IsAU() {
		return nil, fault.New(fault.Input, "%q is a capsule, no Agentic Unit", target).
			WithHint("run it with: aod run %s; an Agentic Unit's agent.yaml says kind: au", target)
	}
	return c, nil
}

// isImageName reports whether a target that isn't a file must be an image: names of units
// contain neither of these.
func isImageName(target string) bool {
	return strings.ContainsAny(target, ":/@") && !strings.HasPrefix(target, ".") && !strings.HasPrefix(target, "/")
}

// wrapImage makes a unit from an image whose program is one.
func wrapImage(env *cli.Env, ref string) (*capsule.Capsule, error) {
	if strings.ContainsAny(ref, " \t\r\n\\$") {
		return nil, fault.New(fault.Input, "%q can't be the name of an image", ref).
			WithHint("write it as NAME:TAG; a directory or a program of this machine begins with ./ or /")
	}
	base, _, _ := strings.Cut(path.Base(ref), ":")
	base, _, _ = strings.Cut(base, "@")
	return wrap(env, base, "FROM "+ref+"\n", "")
}

// wrapProgram makes a unit from a program, in an image of its own: the unit runs the
// program as it was read now. A program that needs libc finds Debian's, a script its
// interpreter.
func wrapProgram(env *cli.Env, program string) (*capsule.Capsule, error) {
	if info, err := os.Stat(program); err != nil || info.Mode()&0o111 == 0 {
		return nil, fault.Wrap(fault.Input, err, "%q can't be executed", program).
			WithHint("if it is a program: chmod +x %s", program)
	}
	text, err := programImage(program)
	if err != nil {
		return nil, err
	}
	return wrap(env, filepath.Base(program), text, program)
}

// wrap makes the directory of a unit in the data directory, once for each content.
func wrap(env *cli.Env, name, dockerfile, program string) (*capsule.Capsule, error) {
	home := filepath.Join(env.Data, "au")
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

// maxShebang is the longest interpreter line that Linux reads.
const maxShebang = 255

// interpreterOf reads the interpreter line of a program: the words after "#!", without env. A
// program without such a line has none.
func interpreterOf(program string) ([]string, error) {
	file, err := os.Open(program)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "%q can't be read", program)
	}
	defer func() { _ = file.Close() }() // read only
	head, err := io.ReadAll(io.LimitReader(file, maxShebang))
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "%q can't be read", program)
	}
	line, isScript := bytes.CutPrefix(head, []byte("#!"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if !isScript || len(words) == 0 {
		return nil, nil
	}
	if path.Base(words[0]) == "env" && len(words) > 1 {
		if words = words[1:]; words[0] == "-S" {
			words = words[1:]
		}
	}
	return words, nil
}

var pythons = lazyregexp.New(`^python(3(\.[0-9]+)?)?$`)

// programImage is the Dockerfile of a program of this machine. Its interpreter, if it has one,
// must be in an image of ours: the error is an Input fault that shows what else would do.
func programImage(program string) (string, error) {
	words, err := interpreterOf(program)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		return dockerfile(images.BaseFrom, "", "unit", nil), nil
	}
	name := path.Base(words[0])
	switch {
	case pythons().MatchString(name):
		return dockerfile(images.BaseName, "", "unit", append([]string{"python3"}, words[1:]...)), nil
	case capsule.DebianHas(name):
		return dockerfile(images.BaseFrom, "", "unit", append([]string{name}, words[1:]...)), nil
	}
	return "", noInterpreter(program, name, words)
}

// dockerfile is that of a program that was copied beside it. install names Debian packages.
func dockerfile(from, install, program string, interpreter []string) string {
	text := "FROM " + from + "\n"
	if install != "" {
		text += "RUN apt-get update && apt-get install -y --no-install-recommends " + install +
			" && rm -rf /var/lib/apt/lists/*\n"
	}
	entrypoint, _ := json.Marshal(append(interpreter, "/"+program)) // texts can always be written
	return text + fmt.Sprintf("COPY %s /%s\nENTRYPOINT %s\n", program, program, entrypoint)
}

// debianPackages have interpreters whose package has another name.
var debianPackages = map[string]string{
	"node": "nodejs", "php": "php-cli", "lua": "lua5.4", "Rscript": "r-base-core",
	"tclsh": "tcl",
}

// noInterpreter shows the directory of a unit whose image has the interpreter.
func noInterpreter(program, name string, words []string) error {
	base := filepath.Base(program)
	dir := nameFor(strings.TrimSuffix(base, filepath.Ext(base)))
	refused := fault.New(fault.Input, "%q is a script for %s, and no image of ours has %s", program, name, name)
	if !plainName().MatchString(name) || !plainName().MatchString(base) {
		return refused.WithHint("make a directory with a Dockerfile that installs it, and an agent.yaml of " +
			"\"kind: au\"")
	}
	install := name
	if other, ok := debianPackages[name]; ok {
		install = other
	}
	text := dockerfile(images.BaseFrom, install, base, append([]string{name}, words[1:]...))
	return refused.WithHint("make a directory of it, and name that: mkdir %s-unit && cp %s %s-unit/ && echo \"kind: "+
		"au\" > %s-unit/agent.yaml; its Dockerfile:\n    %s",
		dir, program, dir, dir, strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    "))
}

// plainName is a name that means the same in a Dockerfile, to apt and to a shell.
var plainName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
