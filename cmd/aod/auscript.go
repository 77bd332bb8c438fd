package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

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

// debianHas are the interpreters of Debian's smallest image.
var debianHas = map[string]bool{
	"sh": true, "bash": true, "dash": true, "perl": true, "awk": true, "mawk": true,
	"sed": true,
}

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
	case debianHas[name]:
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
