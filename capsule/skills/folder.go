package skills

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

const (
	documentName   = "SKILL.md"
	scriptsDir     = "scripts/"
	referencesDir  = "references/"
	firstLineBytes = 256 // as the kernel has it

	packUp = "a skill is instructions: pack data up"
)

// interpreters run what has no first line that names one, by its ending.
var interpreters = map[string]string{".py": "python3", ".sh": "sh", ".js": "node"}

// skill reads a folder. ok is false where its SKILL.md breaks the rules.
func (r *reader) skill(place *os.Root, name string) (skill Skill, ok bool) {
	at := path.Join(Place, name)
	root, err := safefs.Descend(place, name)
	if err != nil {
		r.unreadable(at, err)
		return Skill{}, false
	}
	defer func() { _ = root.Close() }() // holds no data
	document := path.Join(at, documentName)
	raw, err := safefs.ReadRegular(root, documentName, maxDocumentBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.report(document, "it is missing", "add it: a front matter with name and description, then the instructions")
	case errors.Is(err, safefs.ErrTooLarge):
		r.report(document, "it is larger than "+quantity.SizeText(maxDocumentBytes), "move details to references/")
	case err != nil:
		r.unreadable(document, err)
	default:
		var more []fault.Finding
		skill, more = parse(document, name, raw)
		r.findings = append(r.findings, more...)
		ok = skill.Name != ""
	}
	skill.Scripts = r.files(root, at)
	return skill, ok
}

// files looks at all files of a skill, and returns its scripts.
func (r *reader) files(root *os.Root, at string) (scripts []Script) {
	left := maxFiles + 1 // and SKILL.md
	folders := []string{"."}
	for i := 0; i < len(folders) && i < maxFolders; i++ {
		entries, whole := r.entries(root, folders[i], at, left)
		for _, entry := range entries {
			name := path.Join(folders[i], entry.Name())
			if entry.IsDir() {
				folders = append(folders, name)
				continue
			}
			left--
			if name != documentName {
				scripts = append(scripts, r.file(root, at, name, entry)...)
			}
		}
		if !whole {
			r.report(at, fmt.Sprintf("it holds more than %d files", maxFiles), packUp)
			return scripts
		}
	}
	if len(folders) > maxFolders {
		r.report(at, fmt.Sprintf("it holds more than %d folders", maxFolders-1), packUp)
	}
	return scripts
}

// file looks at one file, and returns it if it is a script.
func (r *reader) file(root *os.Root, at, name string, entry fs.DirEntry) []Script {
	full := path.Join(at, name)
	switch kind := entry.Type(); {
	case kind&fs.ModeSymlink != 0:
		r.link(root, full, name)
	case !kind.IsRegular():
		r.report(full, "it is "+safefs.Describe(kind)+", not a regular file", "put the file itself there")
	case strings.HasPrefix(name, scriptsDir):
		return []Script{{Name: name, Interpreter: r.interpreter(root, full, name)}}
	case strings.HasPrefix(name, referencesDir):
		if info, err := entry.Info(); err == nil && info.Size() > maxFileBytes {
			r.warn(full, "a model can read its first "+quantity.SizeText(maxFileBytes)+" alone", "split it")
		}
	}
	return nil
}

// link reports a link: one that leads out of the skill may show what isn't meant to be seen.
func (r *reader) link(root *os.Root, full, name string) {
	target, err := root.Readlink(name)
	if err == nil && !path.IsAbs(target) && filepath.IsLocal(path.Join(path.Dir(name), target)) {
		r.warn(full, "it is a link, which isn't followed", "put the file itself there")
		return
	}
	r.report(full, "it is a link out of the skill's folder", "put the file itself there, or remove it")
}

// interpreter says what runs a script.
func (r *reader) interpreter(root *os.Root, full, name string) string {
	f, _, err := safefs.OpenRegular(root, name)
	if err != nil {
		r.unreadable(full, err)
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, firstLineBytes))
	if err != nil {
		r.unreadable(full, err)
		return ""
	}
	first, _, _ := bytes.Cut(raw, []byte("\n"))
	return interpreterOf(string(first), name)
}

func interpreterOf(first, name string) string {
	rest, named := strings.CutPrefix(strings.TrimSpace(first), "#!")
	if !named {
		return interpreters[path.Ext(name)]
	}
	words := strings.Fields(rest)
	if len(words) > 0 && path.Base(words[0]) == "env" {
		words = strings.Fields(strings.TrimPrefix(strings.Join(words[1:], " "), "-S"))
	}
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
