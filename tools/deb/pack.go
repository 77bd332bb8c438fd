package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// pack is a package to be made.
type pack struct {
	root    fs.FS // of the repository
	version string
	arch    string // Debian's word, which is Go's as well
	program []byte
	at      time.Time
}

// bytes returns the package: an ar archive of a version, of what is for the package manager, and
// of the files.
func (p pack) bytes() ([]byte, error) {
	data, size, err := p.data()
	if err != nil {
		return nil, err
	}
	control, err := p.control(size)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", control}, {"data.tar.gz", data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, p.at.Unix(), 0, 0, "100644", len(m.content))
		b.Write(m.content)
		if len(m.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

const (
	sources = "tools/packaging/deb"
	docDir  = "usr/share/doc/aod"
)

// data has the files that are installed; size is what they take, in KiB.
func (p pack) data() (archive []byte, size int, err error) {
	a := newArchive(p.at)
	a.file("usr/bin/aod", 0o755, p.program)
	p.copy(a, sources+"/aod.service", "usr/lib/systemd/system/aod.service")
	p.copy(a, sources+"/aod.yaml", "etc/aod/aod.yaml")
	p.copy(a, "LICENSE", docDir+"/copyright")
	for _, name := range []string{"README.md", "CHANGELOG.md", "SECURITY.md"} {
		p.copy(a, name, docDir+"/"+name)
	}
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md", "examples/grafana/*"} {
		found, err := fs.Glob(p.root, pattern)
		if err != nil || len(found) == 0 {
			return nil, 0, fmt.Errorf("%s: %d files, %w", pattern, len(found), err)
		}
		for _, name := range found {
			p.copy(a, name, path.Join(docDir, name))
		}
	}
	archive, err = a.bytes()
	return archive, (a.size + 1023) / 1024, err
}

// control has what the package manager reads and runs.
func (p pack) control(size int) ([]byte, error) {
	version, err := debianVersion(p.version)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(p.root, sources+"/control")
	if err != nil {
		return nil, err
	}
	filled := strings.NewReplacer("{VERSION}", version, "{ARCH}", p.arch, "{SIZE}", strconv.Itoa(size)).
		Replace(string(text))
	a := newArchive(p.at)
	a.file("control", 0o644, []byte(filled))
	p.copy(a, sources+"/conffiles", "conffiles")
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		script, err := fs.ReadFile(p.root, sources+"/"+name)
		a.note(err)
		a.file(name, 0o755, script)
	}
	return a.bytes()
}

// copy puts a file of the repository into an archive.
func (p pack) copy(a *archive, from, to string) {
	raw, err := fs.ReadFile(p.root, from)
	a.note(err)
	a.file(to, 0o644, raw)
}

var (
	described = regexp.MustCompile(`^v?(\d[0-9A-Za-z.]*)(?:-(rc[0-9.]+))?(?:-(\d+)-g([0-9a-f]+))?$`)
	bareHash  = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
)

// debianVersion makes what `git describe --tags --always` says one of Debian's: candidates come
// before their release, commits after it. A commit before all releases comes before everything.
func debianVersion(version string) (string, error) {
	if bareHash.MatchString(version) {
		return "0~g" + version, nil
	}
	m := described.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("%q isn't a version such as v1.2.3, v1.2.3-rc1 or v1.2.3-4-g0123abc", version)
	}
	v := m[1]
	if m[2] != "" {
		v += "~" + m[2]
	}
	if m[3] != "" {
		v += "+" + m[3] + ".g" + m[4]
	}
	return v, nil
}
