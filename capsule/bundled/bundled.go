// Package bundled carries the units that come with the program, and writes them where a registry or a command finds
// them. Their names begin with api.Reserved, and no others do.
//
// It knows nothing of how a unit is read or run.
//
// Its Go API may change with every release: see docs/stability.md.
package bundled

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Code is the name of the unit that runs programs in Python.
const Code = "aod.code"

//go:embed all:units
var units embed.FS

// withPackages installs packages of Debian, before the unit's own files come.
const withPackages = `FROM aod/base
USER root
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends {{PACKAGES}} >/dev/null \
 && apt-get clean && rm -rf /var/lib/apt/lists/*
USER 65532:65532
COPY . /capsule/
`

var packageRule = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]{1,127}$`)

// CheckPackage returns an Input fault for a text that can't be the name of a package of Debian.
func CheckPackage(name string) error {
	if !packageRule().MatchString(name) {
		return fault.New(fault.Input, "%s can't be a package of Debian", fault.Quote(name)).
			WithHint("name one as apt does, such as python3-numpy")
	}
	return nil
}

// Dir returns the directory with the units below parent, which it makes where it isn't there. The image of Code gets
// these packages of Debian, whose build needs a network then. Any number of processes may ask at once. The error is a
// fault of storage.
func Dir(parent string, packages []string) (string, error) {
	name, err := digest(packages)
	dir := filepath.Join(parent, name)
	if _, there := os.Stat(dir); there == nil && err == nil {
		return dir, nil
	}
	temp := filepath.Join(parent, safefs.TempName())
	defer func() { _ = os.RemoveAll(temp) }() // where it wasn't renamed
	if err == nil {
		err = os.MkdirAll(parent, 0o700)
	}
	if err == nil {
		err = write(temp, packages)
	}
	if err == nil {
		err = os.Rename(temp, dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // else another process was first
		return "", fault.Wrap(fault.Unavailable, err, "the units that come with AOD can't be written to %s: %s", parent,
			safefs.Reason(err)).
			WithHint("look at the directory's permissions and the free space")
	}
	return dir, nil
}

func write(dir string, packages []string) error {
	from, err := fs.Sub(units, "units")
	if err == nil {
		err = os.CopyFS(dir, from)
	}
	if err != nil || len(packages) == 0 {
		return err
	}
	dockerfile := strings.Replace(withPackages, "{{PACKAGES}}", strings.Join(packages, " "), 1)
	return os.WriteFile(filepath.Join(dir, Code, "Dockerfile"), []byte(dockerfile), 0o600)
}

// digest names a directory by what will be in it.
func digest(packages []string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(units, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := units.ReadFile(name)
		sum.Write([]byte(name + "\x00" + string(raw) + "\x00"))
		return err
	})
	sum.Write([]byte(withPackages + strings.Join(packages, " ")))
	return hex.EncodeToString(sum.Sum(nil))[:16], err
}
