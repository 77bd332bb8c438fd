package artifacts

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// keep copies a file as it is now, to where it is known by its digest.
func (p *part) keep(open func() (handoff.File, error)) (api.File, error) {
	file, err := open()
	if err != nil {
		return api.File{}, err
	}
	defer func() { _ = file.Open.Close() }() // read only
	if err := p.counts.allowsFile(file.Size, p.run.Limits.OutputBytes); err != nil {
		return api.File{}, err
	}
	if err := p.feature.process.Home.Disks.Room(file.Size); err != nil {
		return api.File{}, err
	}
	size, sum, err := p.copy(file)
	if err != nil {
		return api.File{}, run.StorageFault(err)
	}
	return api.File{Name: file.Name, SizeBytes: size, SHA256: sum}, nil
}

// copy copies a file into the directory of artifacts. One that is there already stays.
func (p *part) copy(file handoff.File) (size int64, sum string, err error) {
	dir := p.run.ArtifactsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, "", err
	}
	temp := filepath.Join(dir, safefs.TempName())
	defer func() { err = errors.Join(err, safefs.IgnoreMissing(os.Remove(temp))) }()
	if size, sum, err = copyWithDigest(temp, file); err != nil {
		return 0, "", err
	}
	target := filepath.Join(dir, sum)
	if _, err := os.Lstat(target); err == nil {
		return size, sum, nil
	}
	if err := os.Rename(temp, target); err != nil {
		return 0, "", err
	}
	p.counts.files, p.counts.size = p.counts.files+1, p.counts.size+size
	if p.run.Durable {
		err = errors.Join(safefs.Sync(target), safefs.Sync(dir), safefs.Sync(p.run.Dir))
	}
	return size, sum, err
}

func copyWithDigest(path string, file handoff.File) (size int64, sum string, err error) {
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = file.CopyTo(out); err != nil {
		return 0, "", err
	}
	if _, err = out.Seek(0, io.SeekStart); err != nil {
		return 0, "", err
	}
	return safefs.Digest(out)
}

// keptIn counts the files of a directory of artifacts, and removes what a dead process left of one that it
// was copying.
func keptIn(dir string) (files int, size int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, safefs.IgnoreMissing(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), safefs.TempPrefix) {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return 0, 0, err
			}
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return 0, 0, err
		}
		files, size = files+1, size+info.Size()
	}
	return files, size, nil
}
