package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	currentFile = "current"
	recordFile  = "unit.json"

	// leftover is the age at which an incomplete version, or one that is being removed,
	// counts as left by a process that died.
	leftover = time.Hour
)

// home is the directory where versions live:
//
//	NAME/current            the digest of the last good version
//	NAME/VERSION/unit.json  its record
//	NAME/VERSION/NAME/      its files; the directory's name counts if agent.yaml gives none
//	.temp-*                 work in progress
type home struct{ path string }

// record is the content of a version's unit.json.
type record struct {
	Name   string    `json:"name"`
	Digest string    `json:"digest"`
	Source string    `json:"source"`
	Origin string    `json:"origin,omitempty"`
	By     string    `json:"by,omitempty"`   // who uploaded it
	Team   string    `json:"team,omitempty"` // to which an upload belongs; "": to api.DefaultTeam
	Since  time.Time `json:"since"`
}

// team is that to which a version belongs.
func (r record) team() string {
	if r.Source != unit.FromUpload {
		return ""
	}
	return cmp.Or(r.Team, api.DefaultTeam)
}

func openHome(path string) (*home, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(abs, 0o700)
	}
	if err != nil {
		return nil, unwritable(err)
	}
	h := &home{path: abs}
	return h, h.sweep()
}

// unwritable is the fault of a home that can't be written, or nil without an error.
func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the unit can't be stored").
		WithHint("is the server's disk full, or its data directory somebody else's?")
}

// sweep removes what a process left when it died while it wrote.
func (h *home) sweep() error {
	entries, err := os.ReadDir(h.path)
	if err != nil {
		return unwritable(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), safefs.TempPrefix) && time.Since(info.ModTime()) > leftover {
			if err := os.RemoveAll(filepath.Join(h.path, e.Name())); err != nil {
				return unwritable(err)
			}
		}
	}
	return nil
}

// temp makes a temporary directory in the home; remove it with os.RemoveAll.
func (h *home) temp() (string, error) {
	dir, err := os.MkdirTemp(h.path, safefs.TempPrefix)
	return dir, unwritable(err)
}

func (h *home) unit(name string) string { return filepath.Join(h.path, name) }

func (h *home) version(name, version string) string { return filepath.Join(h.unit(name), version) }

// files returns the directory of a version's capsule.
func (h *home) files(name, version string) string {
	return filepath.Join(h.version(name, version), name)
}

// names lists the units that have versions, sorted.
func (h *home) names() []string {
	entries, _ := os.ReadDir(h.path) // a home that can't be read has no units
	var names []string
	for _, e := range entries {
		if e.IsDir() && api.CheckUnitName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names
}

// versions lists the stored versions of a unit.
func (h *home) versions(name string) ([]string, error) {
	entries, err := os.ReadDir(h.unit(name))
	if err != nil {
		return nil, fmt.Errorf("list versions: %w", err)
	}
	var versions []string
	for _, e := range entries {
		if e.IsDir() && isVersion(e.Name()) {
			versions = append(versions, e.Name())
		}
	}
	return versions, nil
}

// current returns the last good version of a unit, or NotFound if there is none.
func (h *home) current(name string) (string, error) {
	raw, err := readSmall(filepath.Join(h.unit(name), currentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.NotFound, "the unit %s has no version", name)
	}
	digest := string(bytes.TrimSpace(raw))
	if err != nil || !isDigest(digest) {
		return "", damaged(name, currentFile, err)
	}
	return versionOf(digest), nil
}

func (h *home) setCurrent(name, digest string) error {
	return replace(filepath.Join(h.unit(name), currentFile), []byte(digest+"\n"))
}

// record reads the record of a version, or returns NotFound if there is no such version.
func (h *home) record(name, version string) (record, error) {
	var rec record
	gone := fault.New(fault.NotFound, "the unit %s has no version %s", name, fault.Quote(version)).
		WithHint("it was pruned, or never there")
	if !isVersion(version) {
		return rec, gone
	}
	raw, err := readSmall(filepath.Join(h.version(name, version), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return rec, gone
	}
	if err == nil {
		err = json.Unmarshal(raw, &rec)
	}
	if err != nil || rec.Name != name || !isDigest(rec.Digest) || versionOf(rec.Digest) != version {
		return rec, damaged(name, version, err)
	}
	return rec, nil
}

func damaged(name, what string, err error) *fault.Error {
	return fault.Wrap(fault.Internal, err, "the stored files of the unit %s are damaged: %s", name, what).
		WithHint("upload it again, or change its directory")
}

func (h *home) setRecord(dir string, rec record) error {
	raw, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return replace(filepath.Join(dir, recordFile), append(raw, '\n'))
}

// nameFrom returns the name of the last good capsule of a directory, or "" if there was
// none.
func (h *home) nameFrom(origin string) string {
	best, latest := "", time.Time{}
	for _, name := range h.names() {
		version, err := h.current(name)
		if err != nil {
			continue
		}
		rec, err := h.record(name, version)
		info, serr := os.Stat(filepath.Join(h.unit(name), currentFile))
		if err == nil && serr == nil && rec.Origin == origin && info.ModTime().After(latest) {
			best, latest = name, info.ModTime()
		}
	}
	return best
}

// moveIn makes a directory the stored version. It is on the disk before it has that name, and
// the name before moveIn returns.
func (h *home) moveIn(dir string, rec record) error {
	target := h.version(rec.Name, versionOf(rec.Digest))
	err := errors.Join(safefs.SyncTree(dir, h.path), os.MkdirAll(filepath.Dir(target), 0o700))
	if err == nil {
		err = os.Rename(dir, target)
	}
	if err == nil {
		err = errors.Join(safefs.Sync(filepath.Dir(target)), safefs.Sync(h.path))
	}
	return unwritable(err)
}

// discard removes a version. Readers lose it at once.
func (h *home) discard(name, version string) error {
	dir, err := h.temp()
	if err != nil {
		return err
	}
	err = safefs.IgnoreMissing(os.Rename(h.version(name, version), filepath.Join(dir, version)))
	return errors.Join(err, os.RemoveAll(dir))
}

// replace writes a file atomically: after a crash, too, it is either the old file or the
// whole new one.
func replace(path string, raw []byte) error {
	return unwritable(safefs.Replace(path, raw, safefs.ReplaceOptions{Mode: 0o600, Synced: true}))
}
