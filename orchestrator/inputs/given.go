// Package inputs stores what a run is given: its input where the record has it masked, its files, its project. A row of
// the store is on the disk when it is told of, and what it speaks of must be there before: else a loss of power leaves
// a run without its input.
//
//	Place        puts all where the run has it, and on the disk
//	Given.Check  holds what another process goes on with against what was stored of it
//	True         the input as it was accepted
//
// keepTrue (given.go) stores the unmasked input; only True reads it.
//
// It must not know how runs are led, nor the store.
//
// Its Go API may change with every release: see docs/stability.md.
package inputs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Given says what a stored run was given, so that another process can tell whether that is still there. As JSON it is
// part of what is stored of the run. It isn't safe for concurrent use.
type Given struct {
	Files   []File `json:"inputs,omitempty"`  // as they were accepted
	Project string `json:"project,omitempty"` // SHA-256 of the manifest of its project; "": it has none

	placed bool // by this process, or held against what was stored
}

// File is an input file of a stored run.
type File struct {
	Name   string `json:"name"` // below InputDir, slash-separated
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Place puts what a new run is given where it has it: its files, and the project that place stores; nil: it has none.
// What another process may go on with is on the disk then, up to the directory of all runs. The run has its files no
// more: they are known by what is returned. The error is a fault; the caller removes what is left.
func Place(ctx context.Context, r *run.Run, place run.PlaceProject, runs string) (Given, error) {
	g := Given{placed: true}
	if err := os.MkdirAll(r.InputDir(), 0o755); err != nil {
		return g, run.StorageFault(err)
	}
	files := r.Input.Files
	for _, f := range files {
		if err := placeFile(f, filepath.Join(r.InputDir(), filepath.FromSlash(f.Name))); err != nil {
			return g, run.StorageFault(err)
		}
	}
	r.Input.Files = nil
	if r.Durable {
		if err := errors.Join(g.keepFiles(r, files, runs), keepTrue(r)); err != nil {
			return g, err
		}
	}
	return g, g.placeProject(ctx, r, place, runs)
}

// placeFile puts a file into the input directory of a run. Our own files are moved, others are copied.
func placeFile(f run.PlacedFile, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if f.Ours {
		return errors.Join(os.Rename(f.Source, target), os.Chmod(target, 0o644))
	}
	return copyFile(f.Source, target)
}

// copyFile copies a regular file of the user, inside the kernel where that is possible.
func copyFile(source, target string) error {
	in, _, err := safefs.OpenNamed(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	dir, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	_, err = safefs.Copy(dir, filepath.Base(target), in, 0o644)
	return err
}

// keepFiles describes the files, and writes them to the disk.
func (g *Given) keepFiles(r *run.Run, files []run.PlacedFile, runs string) error {
	if len(files) == 0 {
		return nil
	}
	for _, f := range files {
		kept, err := describe(r.InputDir(), f.Name, f.SHA256)
		if err != nil {
			return run.StorageFault(err)
		}
		g.Files = append(g.Files, kept)
	}
	return run.StorageFault(safefs.SyncTree(r.InputDir(), runs))
}

// describe reads a file of the input, but for one whose digest is known.
func describe(dir, name, known string) (File, error) {
	f, info, err := safefs.OpenNamed(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }() // read only
	if known != "" {
		return File{Name: name, Size: info.Size(), SHA256: known}, nil
	}
	size, sum, err := safefs.Digest(f)
	return File{Name: name, Size: size, SHA256: sum}, err
}

// Check holds what a run has against what an earlier process stored of it, once. The error is a fault.
func (g *Given) Check(ctx context.Context, r *run.Run) error {
	if g.placed {
		return nil
	}
	g.placed = true
	if err := g.checkProject(ctx, r); err != nil {
		return err
	}
	if len(g.Files) == 0 { // then a loss of power may have taken the directory along
		return run.StorageFault(os.MkdirAll(r.InputDir(), 0o755))
	}
	for _, want := range g.Files {
		if got, err := describe(r.InputDir(), want.Name, ""); err != nil || got != want {
			return fault.Wrap(fault.Internal, err, "input lost: a file of it isn't what was accepted").
				WithHint("submit it again; the disk may have failed, or files of the data directory were changed")
		}
	}
	return nil
}

// keepTrue writes the input of a run whose record has it masked to the disk, for the next process.
func keepTrue(r *run.Run) error {
	if !r.Record.InputMasked {
		return nil
	}
	err := safefs.Replace(trueFile(r), r.Input.Payload.JSON(), safefs.ReplaceOptions{Mode: 0o600, Synced: true})
	if err == nil {
		err = safefs.Sync(filepath.Dir(r.Dir))
	}
	return run.StorageFault(err)
}

// True returns the input of a stored run as it was accepted. The error is a fault.
func True(r *run.Run, stored []byte) ([]byte, error) {
	if !r.Record.InputMasked {
		return stored, nil
	}
	input, err := read(trueFile(r))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err,
			"input lost: it was masked in the record, and the file with the true one can't be read").
			WithHint("submit it again; a backup doesn't have such files")
	}
	return input, nil
}

func read(path string) (content []byte, err error) {
	f, info, err := safefs.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, info.Size()))
}

// DropTrue removes the file with the true input, when nobody will read it any more.
func DropTrue(r *run.Run) error { return safefs.IgnoreMissing(os.Remove(trueFile(r))) }

func trueFile(r *run.Run) string { return filepath.Join(r.Dir, layout.TrueInput) }
